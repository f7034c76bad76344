// st.async writes to the peer's shared memory and completes bytes on the peer's mbarrier; the peer waits for
// them.
#include "../async.cuh"

extern "C" __global__ void __cluster_dims__(2, 1, 1) store_async(int* out)
{
    __shared__ int slot[32];
    __shared__ Mbarrier bar;
    int t = threadIdx.x;
    unsigned me = CLUSTER_RANK();
    if (t == 0) {
        INIT(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        ARRIVE_EXPECT(&bar, 128);
    }
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    STORE_ASYNC(PEER(&slot[t], me ^ 1), t + 1, PEER(&bar, me ^ 1));
    if (WAIT_PARITY(&bar, 0)) out[me * 32 + t] = slot[31 - t];
}
