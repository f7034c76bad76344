// One bulk copy writes to both blocks of a cluster, and each waits for its own mbarrier. The initialisation is
// released by fence.mbarrier_init and a relaxed arrival.
#include "../async.cuh"

extern "C" __global__ void __cluster_dims__(2, 1, 1) multicast(const int* in, int* out)
{
    __shared__ alignas(16) int tile[32];
    __shared__ Mbarrier bar;
    int t = threadIdx.x;
    unsigned me = CLUSTER_RANK();
    if (t == 0) {
        INIT(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    CLUSTER_ARRIVE_RELAXED();
    CLUSTER_WAIT();
    if (t == 0) ARRIVE_EXPECT(&bar, 128);
    if (me == 0 && t == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                     ::"r"(SMEM(tile)), "l"(GMEM(in)), "r"(128), "r"(SMEM(&bar)), "h"((short)3) : "memory");
    __syncwarp();
    if (WAIT_PARITY(&bar, 0)) out[me * 32 + t] = tile[31 - t];
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
}
