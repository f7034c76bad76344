// The fence need not stand beside the flag: any later strong store to the flag by the same thread completes the
// release pattern, whatever is between; the same on the other side with loads.

extern "C" __global__ void publish(int* data, unsigned* flag, int* out)
{
    if (blockIdx.x == 0) {                                  // writer
        data[0] = 42;
        __threadfence();
        for (int i = 1; i < 4; ++i) out[i] = i;
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
    } else {                                                // reader
        unsigned seen = 0;
        for (int i = 0; i < 1000000 && !seen; ++i)
            asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        if (!seen) return;
        int sum = out[4] + out[5];
        __threadfence();
        out[6] = sum;
        out[0] = data[0];
    }
}
