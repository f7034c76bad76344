// Bins are cleared with plain stores and counted with atomics, with no barrier between. An atomic is strong,
// the plain store is not: the two are unordered and no atomicity holds between them.

extern "C" __global__ void histogram(const unsigned char* in, int* out)
{
    __shared__ int bins[4];
    int t = threadIdx.x;
    if (t < 4) bins[t] = 0;
    atomicAdd(&bins[in[t] & 3], 1);
    __syncthreads();
    if (t < 4) out[t] = bins[t];
}
