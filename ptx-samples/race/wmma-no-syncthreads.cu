// A warp loads a matrix that other warps still fill.
#include "../async.cuh"

#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void tile(const half* in, float* out)
{
    __shared__ half a[256];
    __shared__ float c[256];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += blockDim.x) a[i] = in[255 - i];
    __syncwarp();
    if (t < 32) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
        wmma::fill_fragment(fc, 0.0f);
        wmma::load_matrix_sync(fa, a, 16);
        wmma::load_matrix_sync(fb, a, 16);
        wmma::mma_sync(fc, fa, fb, fc);
        wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
    }
    __syncthreads();
    for (int i = t; i < 256; i += blockDim.x) out[i] = c[i];
}
