// A plain arrival releases what its thread has done, and a cp.async that nobody waited for is not among that.
#include "../async.cuh"

extern "C" __global__ void copy_arrive(const int* in, int* out)
{
    __shared__ int buf[32];
    __shared__ Mbarrier bar;
    int t = threadIdx.x, lane = t % 32;
    if (t == 0) INIT(&bar, 32);
    __syncthreads();
    if (t < 32) {
        COPY4(&buf[lane], &in[lane]);
        ARRIVE(&bar);
    } else if (WAIT_PARITY(&bar, 0)) {
        out[lane] = buf[31 - lane];
    }
}
