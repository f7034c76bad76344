// A thread reads what it has copied asynchronously without waiting: it races with its own copy.
#include "../async.cuh"

extern "C" __global__ void own(const int* in, int* out)
{
    __shared__ int buf[64];
    int t = threadIdx.x;
    COPY4(&buf[t], &in[t]);
    COMMIT();
    out[t] = buf[t];
}
