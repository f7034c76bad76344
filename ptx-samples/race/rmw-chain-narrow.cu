// Like a release sequence, but block 1 bumps the flag with a read-modify-write of block scope. It races with the
// accesses of the other blocks, and the chain is broken at this link.

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
        asm volatile("red.relaxed.cta.global.add.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
    } else {
        if (!wait_for(flag, 2)) return;
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        out[0] = data[0];
    }
}
