// As last-block-reduce, and then the last block resets the counter with a plain store for the next launch. It
// has observed every increment, so all of them come before the store in causality order.

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
        done[0] = 0;
    }
}
