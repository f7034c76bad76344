// A block writes plainly to words that others add to by bulk reductions.
#include "../async.cuh"

extern "C" __global__ void bulk_add(int* out)
{
    __shared__ alignas(16) int part[32];
    int t = threadIdx.x;
    part[t] = blockIdx.x * 32 + t;
    PROXY_FENCE();
    __syncwarp();
    if (t == 0) {
        BULK_ADD(out, part, 128);
        BULK_COMMIT();
        BULK_WAIT(0);
    }
    if (blockIdx.x == 3) out[t] = 0;
}
