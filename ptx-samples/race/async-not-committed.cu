// The copy was not committed before the wait: wait_group waits for groups, and this copy is in none.
#include "../async.cuh"

extern "C" __global__ void own(const int* in, int* out)
{
    __shared__ int buf[64];
    int t = threadIdx.x;
    COPY4(&buf[t], &in[t]);
    WAIT(0);
    COMMIT();
    out[t] = buf[t];
}
