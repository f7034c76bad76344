// Release store and acquire load with device scope: when the load sees the store they synchronize, so the data
// comes before its reader. It is read only if the flag was seen.

extern "C" __global__ void publish(int* data, unsigned* flag, int* out)
{
    if (blockIdx.x == 0) {                                  // writer
        data[0] = 42;
        asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
    } else {                                                // reader
        unsigned seen = 0;
        for (int i = 0; i < 1000000 && !seen; ++i)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        if (!seen) return;
        out[0] = data[0];
    }
}
