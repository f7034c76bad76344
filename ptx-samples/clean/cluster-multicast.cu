// One block of a cluster fetches a tile for all of them: a bulk copy by multicast, which completes an mbarrier at the same
// place in each block. Every block waits for its own; the cluster barriers see to it that all mbarriers are there before
// the copy and that no block has ended.
__device__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__global__ void __cluster_dims__(2, 1, 1) share(const int* in, int* out)
{
    __shared__ alignas(128) int tile[64];
    __shared__ alignas(8) unsigned long long bar;
    unsigned t = threadIdx.x, rank, done = 0;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(smem(&bar)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(smem(&bar)) : "memory");
    }
    cluster_sync();
    if (t == 0 && rank == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                     " [%0], [%1], 256, [%2], %3;"
                     :: "r"(smem(tile)), "l"(__cvta_generic_to_global(in + 64 * (blockIdx.x / 2))), "r"(smem(&bar)),
                        "h"((unsigned short)3) : "memory");
    for (int tries = 0; !done && tries < 1000000; ++tries)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(smem(&bar)) : "memory");
    if (done) out[blockIdx.x * 64 + t] = tile[63 - t] + rank;
    cluster_sync();
}
