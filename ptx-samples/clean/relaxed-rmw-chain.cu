// A release sequence: block 0 releases the flag, block 1 bumps it with a relaxed read-modify-write, block 2
// acquires the bumped value. Observation runs through read-modify-writes, so block 2 is ordered after block 0.

__device__ unsigned wait_for(unsigned* flag, unsigned value)
{
    unsigned seen = 0;
    for (int i = 0; i < 1000000 && seen != value; ++i)
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    return seen == value;
}

extern "C" __global__ void chain(int* data, unsigned* flag, int* out)
{
    if (blockIdx.x == 0) {
        data[0] = 42;
        asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
    } else if (blockIdx.x == 1) {
        if (!wait_for(flag, 1)) return;
        asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
    } else {
        if (!wait_for(flag, 2)) return;
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        out[0] = data[0];
    }
}
