// Threads wait for the phase by the state that their arrival gave, as cuda::barrier does; a drop lowers later
// phases.
#include "../async.cuh"

extern "C" __global__ void state(const int* in, int* out)
{
    __shared__ int buf[64];
    __shared__ Mbarrier bar;
    int t = threadIdx.x, sum = 0;
    if (t == 0) INIT(&bar, 64);
    __syncthreads();
    for (int i = 0; i < 3; ++i) {
        buf[t] = in[i * 64 + t];
        for (int half = 0; half < 2; ++half) {
            unsigned long long state;
            asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(SMEM(&bar)) : "memory");
            int done = 0;
            for (int n = 0; n < 1000000 && !done; ++n)
                asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }"
                             : "=r"(done) : "r"(SMEM(&bar)), "l"(state) : "memory");
            if (!done) return;
            if (half == 0) sum += buf[63 - t];
        }
    }
    out[t] = sum;
}
