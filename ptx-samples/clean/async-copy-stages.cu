// A pipeline of two stages by `cp.async`: while one tile is summed, the next is on its way. The wait for all groups but
// the latest completes the thread's own copies, the barrier behind it those of the others; the second barrier keeps the
// tile from being overwritten while it is read.
#include <cuda_pipeline.h>

__global__ void blur(const int4* in, int* out, int trips)
{
    __shared__ int4 tile[2][64];
    int t = threadIdx.x, sum = 0;
    __pipeline_memcpy_async(&tile[0][t], &in[t], sizeof(int4));
    __pipeline_commit();
    for (int i = 0; i < trips; ++i) {
        if (i + 1 < trips)
            __pipeline_memcpy_async(&tile[(i + 1) & 1][t], &in[(i + 1) * 64 + t], sizeof(int4));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        int4 other = tile[i & 1][(t + 32) & 63];
        sum += other.x + other.y + other.z + other.w;
        __syncthreads();
    }
    out[t] = sum;
}
