// A plain store and a plain load as flag, with no fence: weak accesses observe nothing in the sense of the
// memory model. Flag and data race. (The `asm` keeps the compiler from hoisting the load out of the loop.)

extern "C" __global__ void publish(int* data, unsigned* flag, int* out)
{
    if (blockIdx.x == 0) {                                  // writer
        data[0] = 42;
        asm volatile("st.global.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
    } else {                                                // reader
        unsigned seen = 0;
        for (int i = 0; i < 1000000 && !seen; ++i)
            asm volatile("ld.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        if (!seen) return;
        out[0] = data[0];
    }
}
