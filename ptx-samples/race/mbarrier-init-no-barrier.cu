// Nothing orders the initialisation of an mbarrier before the arrivals of other threads.
#include "../async.cuh"

extern "C" __global__ void init(const int* in, int* out)
{
    __shared__ int buf[64];
    __shared__ Mbarrier bar;
    int t = threadIdx.x;
    if (t == 0) INIT(&bar, 64);

    buf[t] = in[t];
    ARRIVE(&bar);
    if (WAIT_PARITY(&bar, 0)) out[t] = buf[63 - t];
}
