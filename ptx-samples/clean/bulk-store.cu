// Every writer fences towards the async proxy before the barrier; then one thread stores the tile. The tile is
// overwritten once it was read.
#include "../async.cuh"

extern "C" __global__ void bulk_store(const int* in, int* out)
{
    __shared__ alignas(16) int tile[128];
    int t = threadIdx.x;
    tile[t] = in[t] * 2;
    PROXY_FENCE();
    __syncthreads();
    if (t == 0) {
        BULK_STORE(out, tile, 512);
        BULK_COMMIT();
        BULK_WAIT_READ(0);
    }
    __syncthreads();
    tile[t] = 0;
    out[128 + t] = tile[t];
}
