// A multicast pipeline: the readers of both blocks arrive at the empty mbarrier of the block that issues the
// copies.
#include "../async.cuh"

extern "C" __global__ void __cluster_dims__(2, 1, 1) pipeline_between_blocks(const int* in, int* out)
{
    __shared__ alignas(16) int tile[128];
    __shared__ Mbarrier full, empty;
    int t = threadIdx.x, sum = 0;
    unsigned me = CLUSTER_RANK();
    if (t == 0) {
        INIT(&full, 1);
        INIT(&empty, 64);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    CLUSTER_ARRIVE_RELAXED();
    CLUSTER_WAIT();
    for (int i = 0; i < 3; ++i) {
        if (t == 0) ARRIVE_EXPECT(&full, 128);
        if (me == 0 && t == 0) {
            if (i > 0 && !WAIT_PARITY(&empty, (i - 1) % 2)) return;
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                         ::"r"(SMEM(tile)), "l"(GMEM(in + i * 32)), "r"(128), "r"(SMEM(&full)), "h"((short)3) : "memory");
        }
        if (!WAIT_PARITY(&full, i % 2)) return;
        sum += tile[31 - t];
        PROXY_FENCE();
        asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(PEER(&empty, 0)) : "memory");
    }
    out[me * 32 + t] = sum;
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
}
