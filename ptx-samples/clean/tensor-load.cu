// Blocks load boxes of a matrix by a tensor map. The last four rows of each lie outside and come as zeros, but their bytes
// count: the mbarrier expects the whole box, and every thread waits for it.
#include "../async.cuh"

extern "C" __global__ void tensor_load(const __grid_constant__ TensorMap in, int* out)
{
    __shared__ alignas(128) int tile[8][32];
    __shared__ Mbarrier bar;
    int t = threadIdx.x;
    if (t == 0) INIT(&bar, 1);
    __syncthreads();
    if (t == 0) {
        ARRIVE_EXPECT(&bar, (int)sizeof tile);
        TENSOR_LOAD(tile, in, 32 * blockIdx.x, 12, &bar);
    }
    if (WAIT_PARITY(&bar, 0))
        for (int y = 0; y < 8; ++y) out[blockIdx.x * 256 + y * 32 + t] = tile[y][31 - t];
}
