// The consumer waits for parity 1: the phase before the first has it and counts as complete, so the wait lets it
// through before anything was written.
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
        __syncwarp();
        if (lane == 0) ARRIVE(&bar);
    } else if (WAIT_PARITY(&bar, 1)) {
        out[lane] = buf[31 - lane];
    }
}
