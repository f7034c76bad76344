// A block publishes to its peer by a release and an acquire of cluster scope.
#include "../async.cuh"

extern "C" __global__ void __cluster_dims__(2, 1, 1) flag(int* out)
{
    __shared__ int data[32], ready;
    int t = threadIdx.x;
    unsigned me = CLUSTER_RANK();
    if (t == 0) ready = 0;
    data[t] = 0;
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    if (me == 0) {
        PEER_STORE(PEER(&data[t], 1), t);
        __syncwarp();
        if (t == 0) asm volatile("st.release.cluster.shared::cluster.s32 [%0], 1;" ::"r"(PEER(&ready, 1)) : "memory");
    } else {
        int seen = 0;
        for (int i = 0; i < 1000000 && !seen; ++i)
            asm volatile("ld.acquire.cluster.shared::cta.s32 %0, [%1];" : "=r"(seen) : "r"(SMEM(&ready)) : "memory");
        if (seen) out[t] = data[31 - t];
    }
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
}
