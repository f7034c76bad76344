// The consumer gives a stage back by a relaxed arrival, which orders nothing: the producer may overwrite what is
// still read.
#include "../async.cuh"

extern "C" __global__ void ring(const int* in, int* out)
{
    __shared__ int buf[2][32];
    __shared__ Mbarrier full[2], empty[2];
    int t = threadIdx.x, lane = t % 32;
    if (t == 0)
        for (int s = 0; s < 2; ++s) { INIT(&full[s], 32); INIT(&empty[s], 32); }
    __syncthreads();
    if (t < 32) {
        for (int i = 0; i < 6; ++i) {
            int s = i % 2;
            if (!WAIT_PARITY(&empty[s], (i / 2 + 1) % 2)) return;
            buf[s][lane] = in[i * 32 + lane];
            ARRIVE(&full[s]);
        }
    } else {
        int sum = 0;
        for (int i = 0; i < 6; ++i) {
            int s = i % 2;
            if (!WAIT_PARITY(&full[s], i / 2 % 2)) return;
            sum += buf[s][31 - lane];
            asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(SMEM(&empty[s])) : "memory");
        }
        out[lane] = sum;
    }
}
