// One thread waits for the bulk copy, and nothing tells the others that it has arrived.
#include "../async.cuh"

extern "C" __global__ void bulk_load(const int* in, int* out)
{
    __shared__ alignas(16) int tile[128];
    __shared__ Mbarrier bar;
    int t = threadIdx.x;
    if (t == 0) INIT(&bar, 1);
    __syncthreads();
    if (t == 0) {
        ARRIVE_EXPECT(&bar, 512);
        BULK_LOAD(tile, in, 512, &bar);
    }
    if (t == 0 && !WAIT_PARITY(&bar, 0)) return;
    out[t] = tile[127 - t];
}
