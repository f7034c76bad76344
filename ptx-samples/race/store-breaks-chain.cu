// Block 1 sees block 0's release relaxed and overwrites the flag with a relaxed store. A store, unlike a
// read-modify-write, does not carry on what it overwrites: block 2 acquires the flag, but observes only block 1's
// store. `go` makes sure that block 2 reads the flag after that; it orders block 2 after block 1, not block 0.
__device__ bool wait_relaxed(unsigned* flag)
{
    unsigned seen = 0;
    for (int i = 0; i < 1000000 && !seen; ++i)
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    return seen;
}

__device__ unsigned load_acquire(unsigned* flag)
{
    unsigned seen;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    return seen;
}

extern "C" __global__ void chain(int* data, unsigned* flag, unsigned* go, int* out)
{
    if (blockIdx.x == 0) {
        data[0] = 42;
        asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
    } else if (blockIdx.x == 1) {
        if (!wait_relaxed(flag)) return;
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(2) : "memory");
        asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(go), "r"(1) : "memory");
    } else {
        unsigned ready = 0;
        for (int i = 0; i < 1000000 && !ready; ++i) ready = load_acquire(go);
        if (ready && load_acquire(flag) == 2) out[0] = data[0];
    }
}
