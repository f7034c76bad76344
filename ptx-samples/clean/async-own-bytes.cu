// A thread that reads only what it copied itself needs no barrier, just the wait for its group.
#include "../async.cuh"

extern "C" __global__ void own(const int* in, int* out)
{
    __shared__ int buf[64];
    int t = threadIdx.x;
    COPY4(&buf[t], &in[t]);
    COMMIT();
    WAIT(0);
    out[t] = buf[t];
}
