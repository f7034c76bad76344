// Adds into a shared variable that nobody has set to zero. M004: the first atomic uses what lies there when the block starts.
// All accesses are ordered.
extern "C" __global__ void sum(const int* in, int* out)
{
    __shared__ int total;
    atomicAdd(&total, in[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}
