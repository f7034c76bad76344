// A bulk load completes on an mbarrier that another warp has initialised: nothing orders that before the copy is issued.
#include "../async.cuh"

extern "C" __global__ void load(const int* in, int* out)
{
    __shared__ alignas(128) int tile[64];
    __shared__ Mbarrier bar;
    int t = threadIdx.x;
    if (t == 0) {
        INIT(&bar, 1);
        ARRIVE_EXPECT(&bar, 256);
    }
    // Late enough to find it there, most of the time.
    if (t == 32) {
        for (int i = 0; i < 300; i++) __nanosleep(1000);
        BULK_LOAD(tile, in, 256, &bar);
    }
    __syncthreads();
    bool done = false;
    for (int i = 0; i < 1000000 && !done; i++) done = WAIT_PARITY(&bar, 0);
    if (done) out[t] = tile[63 - t];
}
