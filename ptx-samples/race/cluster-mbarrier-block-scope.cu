// One block of a cluster writes and arrives at the mbarrier of the other with cluster scope; the other waits with block scope,
// which leaves the arriving thread out.
#include "../async.cuh"

extern "C" __global__ void __cluster_dims__(2, 1, 1) hand_over(int* data, int* out)
{
    __shared__ Mbarrier bar;
    unsigned rank = CLUSTER_RANK();
    if (threadIdx.x == 0) INIT(&bar, 1);
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    if (threadIdx.x == 0 && rank == 1) {
        data[0] = 42;
        unsigned peer = PEER(&bar, 0);
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(peer) : "memory");
    }
    if (threadIdx.x == 0 && rank == 0) {
        int done = 0;
        for (int tries = 0; tries < 1000000 && !done; ++tries)
            asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], 0;"
                         " selp.s32 %0, 1, 0, p; }" : "=r"(done) : "r"(SMEM(&bar)) : "memory");
        if (done) out[0] = data[0];
    }
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
}
