// The writer has a fence, but stores the data between the fence and the flag. A release pattern covers what
// comes before its first element, the fence; the data comes after it.

extern "C" __global__ void publish(int* data, unsigned* flag, int* out)
{
    if (blockIdx.x == 0) {                                  // writer
        __threadfence();
        data[0] = 42;
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
    } else {                                                // reader
        unsigned seen = 0;
        for (int i = 0; i < 1000000 && !seen; ++i)
            asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        if (!seen) return;
        __threadfence();
        out[0] = data[0];
    }
}
