// The two halves of a warp take different branches, each with a warp barrier for exactly its own lanes.
extern "C" __global__ void halves(const int* in, int* out)
{
    __shared__ int s[32];
    int lane = threadIdx.x;
    s[lane] = in[lane];
    if (lane < 16) {
        asm volatile("bar.warp.sync 0x0000ffff;" ::: "memory");
        out[lane] = s[15 - lane];
    } else {
        asm volatile("bar.warp.sync 0xffff0000;" ::: "memory");
        out[lane] = s[47 - lane];
    }
}
