// Block 1 acquires from block 0 and releases to block 2. Base causality is transitive, so block 2 may read what
// block 0 has stored without having seen block 0's own store to the flag.

__device__ unsigned wait_for(unsigned* flag, unsigned value)
{
    unsigned seen = 0;
    for (int i = 0; i < 1000000 && seen != value; ++i)
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    return seen == value;
}

extern "C" __global__ void chain(int* data, unsigned* flag, int* out)
{
    if (blockIdx.x == 0) {
        data[0] = 42;
        asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
    } else if (blockIdx.x == 1) {
        if (!wait_for(flag, 1)) return;
        asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(2) : "memory");
    } else {
        if (!wait_for(flag, 2)) return;
        out[0] = data[0];
    }
}
