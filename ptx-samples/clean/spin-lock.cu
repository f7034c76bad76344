// A lock of compare-and-swap and exchange. The atomics are relaxed; the fence after taking the lock makes the
// acquire, the fence before giving it back the release.

extern "C" __global__ void deposit(unsigned* lock, int* account)
{
    bool mine = false;
    for (int i = 0; i < 1000000 && !mine; ++i) mine = atomicCAS(lock, 0, 1) == 0;
    if (!mine) return;
    __threadfence();
    account[0] = account[0] + 10;
    __threadfence();
    atomicExch(lock, 0);
}
