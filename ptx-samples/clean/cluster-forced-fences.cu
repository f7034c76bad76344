// Who sees the second flag has seen that the first block's fence came first: with fences of cluster scope in the other order, the
// flag would come from the future. So the data is published although nothing releases the second flag.
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
        asm volatile("fence.sc.cluster;" ::: "memory");
        if (seen) *out = *data;
    }
}
