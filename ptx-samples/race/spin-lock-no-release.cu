// The lock is taken with a fence and given back without one. The holder's stores come after its only fence, so
// its exchange releases nothing of them.

extern "C" __global__ void deposit(unsigned* lock, int* account)
{
    bool mine = false;
    for (int i = 0; i < 1000000 && !mine; ++i) mine = atomicCAS(lock, 0, 1) == 0;
    if (!mine) return;
    __threadfence();
    account[0] = account[0] + 10;
    asm volatile("" ::: "memory");
    atomicExch(lock, 0);
}
