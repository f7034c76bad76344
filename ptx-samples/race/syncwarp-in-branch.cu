// A full-mask warp barrier inside a branch that half of the lanes take. The mask names lanes that are alive and wait at
// the block's barrier instead, so neither barrier completes. (Lanes that have exited would not be waited for.)
extern "C" __global__ void half_branch(const int* in, int* out)
{
    int lane = threadIdx.x, v = in[lane];
    if (lane < 16) {
        asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
        v = -v;
    }
    __syncthreads();
    out[lane] = v;
}
