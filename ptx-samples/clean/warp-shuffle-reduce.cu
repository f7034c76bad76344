// Sum over each warp with shuffles, then over the warps through shared memory. Shuffles exchange registers, so
// there is no memory to order.
extern "C" __global__ void block_sum(const int* in, int* out)
{
    __shared__ int warps[4];
    int t = threadIdx.x, v = in[t];
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    if ((t & 31) == 0) warps[t / 32] = v;
    __syncthreads();
    if (t == 0) out[0] = warps[0] + warps[1] + warps[2] + warps[3];
}
