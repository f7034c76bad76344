// Block sum in shared memory: a barrier after the load and one after each step order every read after the
// store it needs, and every store after the reads of the step before.

extern "C" __global__ void reduce(const int* in, int* out)
{
    __shared__ int tile[256];
    unsigned tid = threadIdx.x;
    unsigned gid = blockIdx.x * blockDim.x + tid;
    tile[tid] = in[gid];
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) tile[tid] += tile[tid + s];
        __syncthreads();
    }
    if (tid == 0) out[blockIdx.x] = tile[0];
}
