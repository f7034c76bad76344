// Lane 0 of the reading warp acquires the flag for all, but no __syncwarp() lies between that and the reads of the other lanes.
extern "C" __global__ void publish(int* data, unsigned* flag, int* out)
{
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t;
        __syncwarp();
        if (t == 0) asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
    } else {
        unsigned now = 0;
        if (t == 0)
            for (int i = 0; i < 1000000 && !now; ++i)
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(flag) : "memory");
        out[t] = data[t];
    }
}
