// Both blocks may store to the same words, under a predicate that is true for the first block in its upper half
// and for the second block everywhere.

extern "C" __global__ void keep(const int* in, int* out)
{
    int t = threadIdx.x, b = blockIdx.x, v = in[b * 32 + t];
    asm volatile("{ .reg .pred p; setp.ge.s32 p, %1, %2; @p st.global.u32 [%0], %1; }"
                 :: "l"(out + t), "r"(v), "r"(16) : "memory");
}
