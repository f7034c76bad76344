// The second block looks once whether the first has finished, and takes what it finds then. It does not acquire, which
// shows only where the first block has done all of its work before the second one starts. R005.
extern "C" __global__ void consume(int* work, int* done, int* result, int* out)
{
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < 300; i++) sum += atomicAdd(&work[i % 8], i);
        *result = sum;
        __threadfence();
        atomicExch(done, 1);
    } else if (atomicAdd(done, 0) == 1) {
        *out = *result;
    }
}
