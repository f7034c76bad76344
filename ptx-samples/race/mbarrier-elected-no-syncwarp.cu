// One lane arrives for its warp, but nothing orders the stores of the other lanes before its arrival.
#include "../async.cuh"

extern "C" __global__ void elect(const int* in, int* out)
{
    __shared__ int buf[32];
    __shared__ Mbarrier bar;
    int t = threadIdx.x, lane = t % 32;
    if (t == 0) INIT(&bar, 1);
    __syncthreads();
    if (t < 32) {
        buf[lane] = in[lane];

        if (lane == 0) ARRIVE(&bar);
    } else if (WAIT_PARITY(&bar, 0)) {
        out[lane] = buf[31 - lane];
    }
}
