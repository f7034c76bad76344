// A ticket lock that passes the number on with relaxed accesses: the holders take turns, but what they store is
// not passed on.

extern "C" __global__ void deposit(unsigned* ticket, unsigned* serving, int* account)
{
    unsigned mine = atomicAdd(ticket, 1), now = ~0u;
    for (int i = 0; i < 1000000 && now != mine; ++i)
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(serving) : "memory");
    if (now != mine) return;
    account[0] = account[0] + 10;
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(serving), "r"(mine + 1) : "memory");
}
