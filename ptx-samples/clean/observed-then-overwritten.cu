// Block 1 overwrites plainly what block 0 stored relaxed, but only after its relaxed load has seen the value.
// Causality includes what a thread has observed, even without release or acquire: no race.
extern "C" __global__ void replace(unsigned* word)
{
    if (blockIdx.x == 0) {
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(word), "r"(1) : "memory");
    } else {
        unsigned seen = 0;
        for (int i = 0; i < 1000000 && !seen; ++i)
            asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(word) : "memory");
        if (seen) asm volatile("st.global.u32 [%0], %1;" :: "l"(word), "r"(2) : "memory");
    }
}
