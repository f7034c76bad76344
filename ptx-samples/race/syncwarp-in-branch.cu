// A full-mask warp barrier inside a branch that half of the lanes take: the mask names lanes that never come.
extern "C" __global__ void half_branch(const int* in, int* out)
{
    int lane = threadIdx.x, v = in[lane];
    if (lane < 16) {
        asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
        v = -v;
    }
    out[lane] = v;
}
