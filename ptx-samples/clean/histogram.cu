// Bins are cleared, then counted with atomics, then read, with a barrier at each change.

extern "C" __global__ void histogram(const unsigned char* in, int* out)
{
    __shared__ int bins[4];
    int t = threadIdx.x;
    if (t < 4) bins[t] = 0;
    __syncthreads();
    atomicAdd(&bins[in[t] & 3], 1);
    __syncthreads();
    if (t < 4) out[t] = bins[t];
}
