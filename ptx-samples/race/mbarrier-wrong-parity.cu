// The consumer waits for parity 1 where the first phase has parity 0: the phase before the first counts as
// complete, so the wait lets it through before anything was written.
#include "../async.cuh"

extern "C" __global__ void parity(const int* in, int* out)
{
    __shared__ int buf[32];
    __shared__ Mbarrier bar;
    int t = threadIdx.x, lane = t % 32;
    if (t == 0) INIT(&bar, 32);
    __syncthreads();
    int done = t >= 32 && WAIT_PARITY(&bar, 1);
    __syncthreads();
    if (t < 32) {
        buf[lane] = in[lane];
        ARRIVE(&bar);
    } else if (done) {
        out[lane] = buf[31 - lane];
    }
}
