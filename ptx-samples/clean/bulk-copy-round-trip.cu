// A tile comes by one bulk copy that an mbarrier completes, is changed, and goes back by another that its issuing thread
// waits for. All threads wait for the first; what they write reaches the second through a proxy fence in each of them and
// the block barrier.
__device__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ bool wait(unsigned bar, unsigned parity)
{
    unsigned done = 0;
    for (int tries = 0; !done && tries < 1000000; ++tries)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(bar), "r"(parity) : "memory");
    return done;
}

__global__ void scale(const int* in, int* out)
{
    __shared__ alignas(128) int tile[128];
    __shared__ alignas(8) unsigned long long bar;
    int t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(smem(&bar)) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    const int* from = in + 128 * blockIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" :: "r"(smem(&bar)) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];"
                     :: "r"(smem(tile)), "l"(__cvta_generic_to_global(from)), "r"(smem(&bar)) : "memory");
    }
    if (!wait(smem(&bar), 0)) return;
    tile[t] = tile[t] * 3;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;"
                     :: "l"(__cvta_generic_to_global(out + 128 * blockIdx.x)), "r"(smem(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
