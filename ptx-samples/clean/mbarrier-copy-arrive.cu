// The arrival is made by the completion of the thread's cp.async: whoever waits for the phase sees what was
// copied.
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
        COPY_ARRIVE(&bar);
    } else if (WAIT_PARITY(&bar, 0)) {
        out[lane] = buf[31 - lane];
    }
}
