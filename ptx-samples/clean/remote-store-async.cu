// Each thread of a cluster's block sends one number to the other block by `st.async`; the receiver's mbarrier counts the
// bytes. Nothing else orders the store and the read, and nothing else has to.
__device__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ unsigned peer(unsigned address, unsigned rank)
{
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

__device__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__global__ void __cluster_dims__(2, 1, 1) swap(int* out)
{
    __shared__ int box[64];
    __shared__ alignas(8) unsigned long long bar;
    unsigned t = threadIdx.x, rank, done = 0;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(smem(&bar)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(smem(&bar)) : "memory");
    }
    cluster_sync();
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                 :: "r"(peer(smem(&box[t]), rank ^ 1)), "r"(100 * rank + t), "r"(peer(smem(&bar), rank ^ 1)) : "memory");
    for (int tries = 0; !done && tries < 1000000; ++tries)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;"
                     " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(smem(&bar)) : "memory");
    if (done) out[rank * 64 + t] = box[63 - t];
    cluster_sync();
}
