// A block reads its peer's shared memory and says so by a relaxed flag, which orders nothing: the peer may end
// before the read is done.
#include "../async.cuh"

extern "C" __global__ void __cluster_dims__(2, 1, 1) neighbour(int* out, int* done)
{
    __shared__ int slot[32];
    int t = threadIdx.x;
    unsigned me = CLUSTER_RANK();
    slot[t] = me * 32 + t;
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    out[me * 32 + t] = PEER_LOAD(PEER(&slot[t], me ^ 1));
    __syncwarp();
    if (t == 0) {
        asm volatile("st.relaxed.gpu.global.s32 [%0], 1;" ::"l"(GMEM(&done[me])) : "memory");
        int seen = 0;
        for (int tries = 0; tries < 1000000 && !seen; ++tries)
            asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(GMEM(&done[me ^ 1])) : "memory");
    }
    __syncwarp();
}
