// A block reads its peer's shared memory; a cluster barrier at the end keeps the peer from ending before.
#include "../async.cuh"

extern "C" __global__ void __cluster_dims__(2, 1, 1) neighbour(int* out)
{
    __shared__ int slot[32];
    int t = threadIdx.x;
    unsigned me = CLUSTER_RANK();
    slot[t] = me * 32 + t;
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    out[me * 32 + t] = PEER_LOAD(PEER(&slot[t], me ^ 1));
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
}
