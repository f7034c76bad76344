// cp.async.wait_all waits for copies that were not committed to any group, too.
#include "../async.cuh"

extern "C" __global__ void own(const int* in, int* out)
{
    __shared__ int buf[64];
    int t = threadIdx.x;
    COPY4(&buf[t], &in[t]);
    WAIT_ALL();
    out[t] = buf[t];
}
