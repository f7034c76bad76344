// A product of 16 by 16 tiles by `wmma`: each of two warps loads its operands from shared memory, which all threads have
// filled, and stores its sums there, from where all threads read them. A barrier lies between each.
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

__global__ void product(const int* a, const int* b, int* c)
{
    __shared__ alignas(32) __half left[2][256], right[256];
    __shared__ alignas(32) float sums[2][256];
    int t = threadIdx.x, w = t / 32;
    for (int i = t; i < 512; i += 64) left[i / 256][i % 256] = __int2half_rn(a[i] % 5 - 2);
    for (int i = t; i < 256; i += 64) right[i] = __int2half_rn(b[i] % 3 - 1);
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
    wmma::fill_fragment(z, 1.0f);
    wmma::load_matrix_sync(x, left[w], 16);
    wmma::load_matrix_sync(y, right, 16);
    wmma::mma_sync(z, x, y, z);
    wmma::store_matrix_sync(sums[w], z, 16, wmma::mem_row_major);
    __syncthreads();
    for (int i = t; i < 512; i += 64) c[i] = (int)sums[1 - i / 256][i % 256];
}
