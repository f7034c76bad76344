// Each block hands on to the next one, if that looks late enough: it looks once. Only the last of three forgets to acquire, and
// only where the first has ended before the second starts, and the second before the third, is there anything to take. R005.
extern "C" __global__ void chain(int* work, int* stage, int* value, int* out)
{
    if (threadIdx.x != 0) return;
    int me = blockIdx.x;
    if (me > 0) {
        if (atomicAdd(stage, 0) != me) return;
        if (me < 2) __threadfence();
    }
    if (me == 2) {
        *out = *value;
        return;
    }
    int sum = 0;
    for (int i = 0; i < 200; i++) sum += atomicAdd(&work[me], i);
    *value = sum;
    __threadfence();
    atomicExch(stage, me + 1);
}
