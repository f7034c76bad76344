// Threads copy the same source bytes to the same place, as tiles smaller than the block do: whoever comes last
// leaves the same bytes.
#include "../async.cuh"

extern "C" __global__ void shared_tile(const int* in, int* out)
{
    __shared__ int tile[64];
    int t = threadIdx.x;
    COPY4(&tile[t % 64], &in[t % 64]);
    COMMIT();
    WAIT(0);
    __syncthreads();
    out[t] = tile[63 - t % 64];
}
