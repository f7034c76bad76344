// A ticket lock: each thread waits until its number is served. The number is passed on with release and acquire,
// from holder to holder.

extern "C" __global__ void deposit(unsigned* ticket, unsigned* serving, int* account)
{
    unsigned mine = atomicAdd(ticket, 1), now = ~0u;
    for (int i = 0; i < 1000000 && now != mine; ++i)
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(serving) : "memory");
    if (now != mine) return;
    account[0] = account[0] + 10;
    asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(serving), "r"(mine + 1) : "memory");
}
