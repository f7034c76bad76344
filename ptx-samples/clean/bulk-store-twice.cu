// One tile is stored twice, each time as a group of its own. Both groups are waited for before it is overwritten.
#include "../async.cuh"

extern "C" __global__ void twice(const int* in, int* out)
{
    __shared__ alignas(16) int tile[128];
    int t = threadIdx.x;
    tile[t] = in[t] * 2;
    PROXY_FENCE();
    __syncthreads();
    if (t == 0) {
        for (int i = 0; i < 2; i++) {
            BULK_STORE(out + 128 * i, tile, 512);
            BULK_COMMIT();
        }
        BULK_WAIT_READ(0);
    }
    __syncthreads();
    tile[t] = 0;
    if (t == 0) BULK_WAIT(0);
}
