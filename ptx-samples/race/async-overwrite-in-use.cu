// No barrier at the end of the trip: a fast warp copies into the stage that a slow one still reads.
#include "../async.cuh"

extern "C" __global__ void pipeline(const int4* in, int* out)
{
    __shared__ int4 stage[2][64];
    int t = threadIdx.x, sum = 0;
    COPY16(&stage[0][t], &in[t]);
    COMMIT();
    for (int i = 0; i < 4; ++i) {
        if (i + 1 < 4) COPY16(&stage[(i + 1) % 2][t], &in[(i + 1) * 64 + t]);
        COMMIT();
        WAIT(1);
        __syncthreads();
        sum += stage[i % 2][63 - t].x;
    }
    out[t] = sum;
}
