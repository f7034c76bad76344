// Both blocks execute a store to the same words, but its predicate is false in all of the first block: an access
// that does not happen does not race.

extern "C" __global__ void keep(const int* in, int* out)
{
    int t = threadIdx.x, b = blockIdx.x, v = in[b * 32 + t];
    asm volatile("{ .reg .pred p; setp.ge.s32 p, %1, %2; @p st.global.u32 [%0], %1; }"
                 :: "l"(out + t), "r"(v), "r"(32) : "memory");
}
