// Two threads copy different bytes to one place: which arrives last is open.
#include "../async.cuh"

extern "C" __global__ void shared_tile(const int* in, int* out)
{
    __shared__ int tile[64];
    int t = threadIdx.x;
    COPY4(&tile[t % 64], &in[t]);
    COMMIT();
    WAIT(0);
    __syncthreads();
    out[t] = tile[63 - t % 64];
}
