// One warp clears a header word by word, another sets one of its bytes, unordered. Accesses of different size to
// the same bytes void every promise of the memory model.

extern "C" __global__ void header(unsigned char* out)
{
    __shared__ __align__(4) unsigned char head[8];
    int t = threadIdx.x;
    if (t < 2) ((unsigned*)head)[t] = 0x01010101u * t;
    if (t == 32) head[5] = 255;
    __syncthreads();
    if (t < 8) out[t] = head[t];
}
