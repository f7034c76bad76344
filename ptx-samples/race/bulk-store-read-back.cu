// wait_group.read waits until the source is read. What was written can be read behind wait_group only.
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
        out[128] = out[5];
    }
}
