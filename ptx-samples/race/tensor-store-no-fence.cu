// The tile is written through the generic proxy and stored by a tensor map through the async proxy, with a barrier between and no
// fence.proxy.async.
#include "../async.cuh"

extern "C" __global__ void tensor_store(const int* in, const __grid_constant__ TensorMap out, int* sum)
{
    __shared__ alignas(128) int tile[4][32];
    int t = threadIdx.x;
    for (int y = 0; y < 4; ++y) tile[y][t] = in[y * 32 + t] * 2;
    __syncthreads();
    if (t == 0) {
        TENSOR_STORE(out, 32 * blockIdx.x, 1, tile);
        BULK_COMMIT();
        BULK_WAIT_READ(0);
    }
    __syncthreads();
    tile[0][t] = 1;
    sum[blockIdx.x * 32 + t] = tile[0][t] + tile[1][t];
}
