// The boxes of two blocks share a row, and both store it.
#include "../async.cuh"

extern "C" __global__ void overlapping(const __grid_constant__ TensorMap out)
{
    __shared__ alignas(128) int tile[4][32];
    int t = threadIdx.x;
    for (int y = 0; y < 4; ++y) tile[y][t] = blockIdx.x + 1;
    PROXY_FENCE();
    __syncwarp();
    if (t == 0) {
        TENSOR_STORE(out, 0, 3 * blockIdx.x, tile);
        BULK_COMMIT();
        BULK_WAIT(0);
    }
}
