// As bulk-ring, but the readers do not fence before they give a tile back. Their loads have their values by
// then; only the letter of the model wants a fence, so this is a warning.
#include "../async.cuh"

extern "C" __global__ void bulk_ring(const int* in, int* out)
{
    __shared__ alignas(16) int tile[2][128];
    __shared__ Mbarrier full[2], empty[2];
    int t = threadIdx.x;
    if (t == 0)
        for (int s = 0; s < 2; ++s) { INIT(&full[s], 1); INIT(&empty[s], 128); }
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < 4; ++i) {
        int s = i % 2;
        if (t == 0) {
            if (!WAIT_PARITY(&empty[s], i / 2 ^ 1)) return;
            ARRIVE_EXPECT(&full[s], 512);
            BULK_LOAD(tile[s], in + i * 128, 512, &full[s]);
        }
        if (!WAIT_PARITY(&full[s], i / 2)) return;
        sum += tile[s][127 - t];
        ARRIVE(&empty[s]);
    }
    out[t] = sum;
}
