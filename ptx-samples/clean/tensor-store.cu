// Every writer fences towards the async proxy before the barrier; then one thread stores the tile into a box of the tensor. The
// tile is overwritten once it was read.
#include "../async.cuh"

extern "C" __global__ void tensor_store(const int* in, const __grid_constant__ TensorMap out, int* sum)
{
    __shared__ alignas(128) int tile[4][32];
    int t = threadIdx.x;
    for (int y = 0; y < 4; ++y) tile[y][t] = in[y * 32 + t] * 2;
    PROXY_FENCE();
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
