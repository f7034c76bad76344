// One tensor load writes its box to both blocks of a cluster. The block that issued it waits; the other reads without.
#include "../async.cuh"

extern "C" __global__ void __cluster_dims__(2, 1, 1) multicast(const __grid_constant__ TensorMap in, int* out)
{
    __shared__ alignas(128) int tile[4][32];
    __shared__ Mbarrier bar;
    int t = threadIdx.x;
    unsigned me = CLUSTER_RANK();
    if (t == 0) {
        INIT(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    CLUSTER_ARRIVE_RELAXED();
    CLUSTER_WAIT();
    if (t == 0) ARRIVE_EXPECT(&bar, (int)sizeof tile);
    if (me == 0 && t == 0) TENSOR_MULTICAST(tile, in, 0, 2, &bar, 3);
    __syncwarp();
    if (me == 1 || WAIT_PARITY(&bar, 0)) out[me * 32 + t] = tile[3][31 - t];
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
}
