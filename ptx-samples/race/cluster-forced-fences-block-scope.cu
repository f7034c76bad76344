// As in clean/cluster-forced-fences, but the reader's fence has block scope, so that it is in no order with that of the other block.
extern "C" __global__ void __cluster_dims__(3, 1, 1) fences(int* words, int* out)
{
    int* data = &words[0];
    int *first = &words[32], *second = &words[64];
    int seen = 0;
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *data = 7;
        asm volatile("fence.sc.cluster;" ::: "memory");
        asm volatile("st.release.cluster.global.s32 [%0], 1;" ::"l"(first) : "memory");
    } else if (blockIdx.x == 1) {
        for (int i = 0; i < 1000000 && !seen; ++i)
            asm volatile("ld.acquire.cluster.global.s32 %0, [%1];" : "=r"(seen) : "l"(first) : "memory");
        if (seen) asm volatile("st.relaxed.cluster.global.s32 [%0], 1;" ::"l"(second) : "memory");
    } else {
        for (int i = 0; i < 1000000 && !seen; ++i)
            asm volatile("ld.relaxed.cluster.global.s32 %0, [%1];" : "=r"(seen) : "l"(second) : "memory");
        asm volatile("fence.sc.cta;" ::: "memory");
        if (seen) *out = *data;
    }
}
