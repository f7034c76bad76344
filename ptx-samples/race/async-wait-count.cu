// A cp.async pipeline that lets two groups stay pending where only the next stage's may: the stage that is read
// has not arrived.
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
        WAIT(2);
        __syncthreads();
        sum += stage[i % 2][63 - t].x;
        __syncthreads();
    }
    out[t] = sum;
}
