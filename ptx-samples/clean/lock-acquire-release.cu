// A lock of an acquiring compare-and-swap and a releasing store, with no fence at all.
extern "C" __global__ void deposit(unsigned* lock, int* account)
{
    unsigned held = 1;
    for (int i = 0; i < 1000000 && held; ++i)
        asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(held) : "l"(lock) : "memory");
    if (held) return;
    account[0] = account[0] + 10;
    asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(lock), "r"(0) : "memory");
}
