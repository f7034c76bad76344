// Every warp stores the same value to one word; all but the first hand their store on through a counter that the reader
// acquires. The first warp's store is unordered with the read, however many others came after it: not only a same-value
// warning, but a race.
extern "C" __global__ void mark(int* mark, unsigned* done, int* out)
{
    int warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, warps = gridDim.x * (blockDim.x / 32);
    if (threadIdx.x % 32 != 0) return;
    mark[0] = 7;
    if (warp == 0) return;                                   // hands nothing on
    __threadfence();
    unsigned before = atomicAdd(done, 1u);
    __threadfence();
    if (before == warps - 2) out[0] = mark[0];
}
