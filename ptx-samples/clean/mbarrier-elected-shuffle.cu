// One lane arrives for its warp, behind a shuffle that brings the lanes together. A shuffle orders no memory, so this is a
// warning; behind __syncwarp() it would be right.
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
        int first = __shfl_sync(0xffffffff, lane, 0);
        if (lane == first) ARRIVE(&bar);
    } else if (WAIT_PARITY(&bar, 0)) {
        out[lane] = buf[31 - lane];
    }
}
