// A barrier for the whole grid with fences of block scope, which do not cover the threads of other blocks.

__device__ bool grid_barrier(unsigned* arrived)
{
    __shared__ bool all;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_block();
        atomicAdd(arrived, 1);
        unsigned seen = 0;
        for (int i = 0; i < 1000000 && seen != gridDim.x; ++i) seen = *(volatile unsigned*)arrived;
        __threadfence_block();
        all = seen == gridDim.x;
    }
    __syncthreads();
    return all;
}

extern "C" __global__ void exchange(int* data, unsigned* arrived, int* out)
{
    int t = threadIdx.x, b = blockIdx.x;
    data[b * 32 + t] = b * 100 + t;
    if (!grid_barrier(arrived)) return;
    out[b * 32 + t] = data[(b + 1) % gridDim.x * 32 + t];
}
