// A thread that does not issue the bulk store fences behind the barrier; that orders nothing for the one that
// does.
#include "../async.cuh"

extern "C" __global__ void bulk_store(const int* in, int* out)
{
    __shared__ alignas(16) int tile[128];
    int t = threadIdx.x;
    tile[t] = in[t] * 2;
    __syncthreads();
    if (t == 32) PROXY_FENCE();
    if (t == 0) {
        BULK_STORE(out, tile, 512);
        BULK_COMMIT();
        BULK_WAIT(0);
    }
}
