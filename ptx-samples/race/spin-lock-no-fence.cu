// The same lock without fences. Only one thread at a time is inside, but the relaxed atomics order nothing else,
// so what one holder stored is unordered with what the next one loads.

extern "C" __global__ void deposit(unsigned* lock, int* account)
{
    bool mine = false;
    for (int i = 0; i < 1000000 && !mine; ++i) mine = atomicCAS(lock, 0, 1) == 0;
    if (!mine) return;
    asm volatile("" ::: "memory");
    account[0] = account[0] + 10;
    asm volatile("" ::: "memory");
    atomicExch(lock, 0);
}
