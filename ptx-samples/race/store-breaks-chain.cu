// Like a release sequence, but block 1 bumps the flag with a relaxed store. A store does not carry on what it
// overwrites: block 2 observes block 1's store, which releases nothing.

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
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(2) : "memory");
    } else {
        if (!wait_for(flag, 2)) return;
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        out[0] = data[0];
    }
}
