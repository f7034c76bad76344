// Block-scope release and acquire between two warps of block 0, then device-scope ones to block 1. Scope is
// checked link by link and causality is transitive, so block 1 is ordered after the first warp.
extern "C" __global__ void relay(int* data, unsigned* near, unsigned* far, int* out)
{
    unsigned seen = 0;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        data[0] = 42;
        asm volatile("st.release.cta.global.u32 [%0], %1;" :: "l"(near), "r"(1) : "memory");
    } else if (blockIdx.x == 0 && threadIdx.x == 32) {
        for (int i = 0; i < 1000000 && !seen; ++i)
            asm volatile("ld.acquire.cta.global.u32 %0, [%1];" : "=r"(seen) : "l"(near) : "memory");
        if (seen) asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(far), "r"(1) : "memory");
    } else if (blockIdx.x == 1 && threadIdx.x == 0) {
        for (int i = 0; i < 1000000 && !seen; ++i)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(far) : "memory");
        if (seen) out[0] = data[0];
    }
}
