// Each half of the block meets at a named barrier of its own, which is enough: a thread reads only what its
// own half stored. Half a block is two warps, so a detector that takes `bar.sync 1, 64` for a barrier of the
// block, or for none, is wrong.

extern "C" __global__ void halves(const int* in, int* out)
{
    __shared__ int buf[128];
    int t = threadIdx.x, half = t / 64;
    buf[t] = in[t];
    if (half == 0) asm volatile("bar.sync 1, 64;" ::: "memory");
    else           asm volatile("bar.sync 2, 64;" ::: "memory");
    out[t] = buf[half * 64 + (63 - (t & 63))];
}
