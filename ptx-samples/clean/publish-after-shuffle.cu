// A warp writes its data, meets at a shuffle, and one lane releases for all; on the other side one lane acquires, and its
// warp meets it at a shuffle. In practice that works, but a shuffle orders no memory: where it stands, __syncwarp() should.
extern "C" __global__ void publish(int* data, unsigned* flag, int* out)
{
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t;
        int sum = __shfl_xor_sync(0xffffffff, t, 1);
        if (t == 0) asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(sum) : "memory");
    } else {
        unsigned seen = 0;
        if (t == 0)
            for (int i = 0; i < 1000000 && !seen; ++i)
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        seen = __shfl_sync(0xffffffff, seen, 0);
        if (!seen) return;
        out[t] = data[31 - t];
    }
}
