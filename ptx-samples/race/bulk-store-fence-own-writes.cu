// Only the thread that issues the bulk store fences, and before the barrier: that covers its own writes and no
// others.
#include "../async.cuh"

extern "C" __global__ void bulk_store(const int* in, int* out)
{
    __shared__ alignas(16) int tile[128];
    int t = threadIdx.x;
    tile[t] = in[t] * 2;
    if (t == 0) PROXY_FENCE();
    __syncthreads();
    if (t == 0) {
        BULK_STORE(out, tile, 512);
        BULK_COMMIT();
        BULK_WAIT(0);
    }
}
