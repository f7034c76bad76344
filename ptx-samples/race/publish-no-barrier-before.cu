// All threads of a block write, and thread 0 releases a flag for them, which the reading block acquires. The flag is in order, but
// no __syncthreads() lies between the writes of the other threads and the release.
extern "C" __global__ void publish(int* data, unsigned* flag, int* out)
{
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t;
        if (t == 0) asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
    } else {
        __shared__ unsigned seen;
        if (t == 0) {
            unsigned now = 0;
            for (int i = 0; i < 1000000 && !now; ++i)
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(flag) : "memory");
            seen = now;
        }
        __syncthreads();
        if (seen) out[t] = data[63 - t];
    }
}
