// Blocks of a cluster write to each other's shared memory between two cluster barriers.
#include "../async.cuh"

extern "C" __global__ void __cluster_dims__(2, 1, 1) exchange(int* out)
{
    __shared__ int slot[32];
    int t = threadIdx.x;
    unsigned me = CLUSTER_RANK();
    slot[t] = -1;
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    PEER_STORE(PEER(&slot[t], me ^ 1), t);
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    out[me * 32 + t] = slot[31 - t];
}
