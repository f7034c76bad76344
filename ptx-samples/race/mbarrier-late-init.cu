// Nothing orders the initialisation of an mbarrier before the arrival of another warp, which mostly comes first.
#include "../async.cuh"

extern "C" __global__ void init(int* out)
{
    __shared__ Mbarrier bar;
    int t = threadIdx.x;
    if (t == 0) {
        int sum = 0;
        for (int i = 0; i < 1000; ++i) { sum += i; asm volatile("" : "+r"(sum)); }
        INIT(&bar, 1);
        if (WAIT_PARITY(&bar, 0)) out[0] = sum;
    } else if (t == 32) {
        ARRIVE(&bar);
    }
}
