// The releasing lane has met half of its warp at a shuffle, not the lanes whose data the reader takes.
extern "C" __global__ void publish(int* data, unsigned* flag, int* out)
{
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t;
        int sum = t < 16 ? __shfl_xor_sync(0xffff, t, 1) : 0;
        if (t == 0) asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(sum) : "memory");
    } else if (t == 0) {
        unsigned seen = 0;
        for (int i = 0; i < 1000000 && !seen; ++i)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        if (!seen) return;
        out[0] = data[20];
    }
}
