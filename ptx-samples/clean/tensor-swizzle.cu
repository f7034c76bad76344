// A box with the swizzle of 128 bytes: the number of each chunk of 16 bytes is combined with that of its row, modulo 8. The matrix
// is transposed on its way out, and the result is right.
#include "../async.cuh"

extern "C" __global__ void swizzled(const __grid_constant__ TensorMap in, int* out)
{
    __shared__ alignas(1024) int tile[16][32];
    __shared__ Mbarrier bar;
    int t = threadIdx.x;
    if (t == 0) INIT(&bar, 1);
    __syncthreads();
    if (t == 0) {
        ARRIVE_EXPECT(&bar, (int)sizeof tile);
        TENSOR_LOAD(tile, in, 32, 0, &bar);
    }
    if (WAIT_PARITY(&bar, 0))
        for (int y = 0; y < 16; ++y) out[t * 16 + y] = tile[y][(t / 4 ^ y % 8) * 4 + t % 4];
}
