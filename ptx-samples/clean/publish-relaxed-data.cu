// No fence at all, but the data is accessed relaxed as well. Strong accesses whose scopes cover each other never
// race; a stale value is allowed, and what looks like a publication is none.

extern "C" __global__ void publish(int* data, unsigned* flag, int* out)
{
    if (blockIdx.x == 0) {                                  // writer
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(data), "r"(42) : "memory");
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
    } else {                                                // reader
        unsigned seen = 0;
        for (int i = 0; i < 1000000 && !seen; ++i)
            asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        if (!seen) return;
        int value;
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(data) : "memory");
        out[0] = value;
    }
}
