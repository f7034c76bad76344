// The block that finishes last adds up the partial sums of all. A fence after the count makes the acquire
// pattern; the count is a chain of read-modify-writes, so the last block synchronizes with every other.

extern "C" __global__ void total(const int* in, int* partial, unsigned* done, int* out)
{
    __shared__ int sum;
    __shared__ bool last;
    int t = threadIdx.x;
    if (t == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[blockIdx.x * blockDim.x + t]);
    __syncthreads();
    if (t == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(done, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && t == 0) {
        int all = 0;
        for (int b = 0; b < gridDim.x; ++b) all += partial[b];
        out[0] = all;
    }
}
