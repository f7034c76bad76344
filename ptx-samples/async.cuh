// Macros for the samples with asynchronous copies, mbarriers and clusters: the instruction stands at its line in the sample.
#pragma once

#define SMEM(p) ((unsigned)__cvta_generic_to_shared(p))
#define GMEM(p) ((unsigned long long)__cvta_generic_to_global(p))

#define COPY16(dst, src) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(SMEM(dst)), "l"(GMEM(src)) : "memory")
#define COPY4(dst, src) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(SMEM(dst)), "l"(GMEM(src)) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#define WAIT_ALL() asm volatile("cp.async.wait_all;" ::: "memory")
#define COPY_ARRIVE(bar) \
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(SMEM(bar)) : "memory")

typedef unsigned long long Mbarrier;
#define INIT(bar, n) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SMEM(bar)), "r"(n) : "memory")
#define INVAL(bar) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(SMEM(bar)) : "memory")
#define ARRIVE(bar) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SMEM(bar)) : "memory")
#define ARRIVE_EXPECT(bar, n) \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SMEM(bar)), "r"(n) : "memory")
// 1 when the phase of this parity is complete, 0 after a million tries.
#define WAIT_PARITY(bar, parity)                                                                              \
    ({                                                                                                        \
        int done = 0;                                                                                         \
        for (int tries = 0; tries < 1000000 && !done; ++tries)                                                \
            asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;"             \
                         " selp.s32 %0, 1, 0, p; }"                                                           \
                         : "=r"(done) : "r"(SMEM(bar)), "r"(parity) : "memory");                              \
        done;                                                                                                 \
    })

#define BULK_LOAD(dst, src, n, bar)                                                                           \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: \
                     "r"(SMEM(dst)), "l"(GMEM(src)), "r"(n), "r"(SMEM(bar)) : "memory")
#define BULK_STORE(dst, src, n)                                                                               \
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(GMEM(dst)),              \
                 "r"(SMEM(src)), "r"(n) : "memory")
#define BULK_ADD(dst, src, n)                                                                                 \
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" ::              \
                     "l"(GMEM(dst)), "r"(SMEM(src)), "r"(n) : "memory")
#define BULK_COMMIT() asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define BULK_WAIT(n) asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) : "memory")
#define BULK_WAIT_READ(n) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) : "memory")
#define PROXY_FENCE() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")

// What `cuTensorMapEncodeTiled` makes; a kernel takes it as `const __grid_constant__`.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
#define TENSOR_LOAD(dst, map, x, y, bar)                                                                      \
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::    \
                     "r"(SMEM(dst)), "l"(&(map)), "r"(x), "r"(y), "r"(SMEM(bar)) : "memory")
#define TENSOR_MULTICAST(dst, map, x, y, bar, mask)                                                           \
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"                \
                 " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(SMEM(dst)), "l"(&(map)), "r"(x), "r"(y),             \
                 "r"(SMEM(bar)), "h"((short)(mask)) : "memory")
#define TENSOR_STORE(map, x, y, src)                                                                          \
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&(map)), \
                 "r"(x), "r"(y), "r"(SMEM(src)) : "memory")
#define TENSOR_ADD(map, x, y, src)                                                                            \
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];" ::  \
                     "l"(&(map)), "r"(x), "r"(y), "r"(SMEM(src)) : "memory")

#define CLUSTER_ARRIVE() asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory")
#define CLUSTER_ARRIVE_RELAXED() asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory")
#define CLUSTER_WAIT() asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory")
#define CLUSTER_RANK() ({ unsigned rank; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank)); rank; })
#define PEER(p, rank)                                                                                         \
    ({                                                                                                        \
        unsigned at;                                                                                          \
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(SMEM(p)), "r"(rank));            \
        at;                                                                                                   \
    })
#define PEER_STORE(at, v) asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(at), "r"(v) : "memory")
#define PEER_LOAD(at)                                                                                         \
    ({ int v; asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(v) : "r"(at) : "memory"); v; })
#define STORE_ASYNC(at, v, bar)                                                                               \
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(at),  \
                 "r"(v), "r"(bar) : "memory")
