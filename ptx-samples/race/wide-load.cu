// One block stores two halves of a 64-bit word one by one, the other loads the word whole. All three are
// relaxed with device scope, but of different size, so they are no morally strong pair.
extern "C" __global__ void halves(unsigned* word, unsigned long long* out)
{
    if (blockIdx.x == 0) {
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(word), "r"(1) : "memory");
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(word + 1), "r"(2) : "memory");
    } else {
        unsigned long long both;
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(both) : "l"(word) : "memory");
        out[0] = both;
    }
}
