// Blocks of a cluster pass numbers round: each thread writes into the shared memory of the next block, and reads what the
// block before has written. The first cluster barrier makes sure that all blocks have begun, the second orders writes and
// reads; nobody touches another block's memory after it, so that blocks may end.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(4, 1, 1) pass(const int* in, int* out)
{
    __shared__ int box[64];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned t = threadIdx.x, at = blockIdx.x * 64 + t;
    cluster.sync();
    int* next = cluster.map_shared_rank(box, (cluster.block_rank() + 1) % cluster.num_blocks());
    next[63 - t] = in[at];
    cluster.sync();
    out[at] = box[t];
}
