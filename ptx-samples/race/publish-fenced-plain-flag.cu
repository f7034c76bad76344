// Plain flag accesses with a full fence on each side. The fences are sequentially consistent and their forced
// order covers the data, but the flag's own store and load are weak and unordered.

extern "C" __global__ void publish(int* data, unsigned* flag, int* out)
{
    if (blockIdx.x == 0) {                                  // writer
        data[0] = 42;
        __threadfence();
        asm volatile("st.global.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
    } else {                                                // reader
        unsigned seen = 0;
        for (int i = 0; i < 1000000 && !seen; ++i)
            asm volatile("ld.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        if (!seen) return;
        __threadfence();
        out[0] = data[0];
    }
}
