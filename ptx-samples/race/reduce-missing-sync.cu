// Block sum in shared memory that forgets the barrier after the load: in the first step a thread of the
// lower half reads an element that a thread of another warp has stored. No barrier synchronizes the two,
// so neither access comes before the other in causality order.

extern "C" __global__ void reduce(const int* in, int* out)
{
    __shared__ int tile[256];
    unsigned tid = threadIdx.x;
    unsigned gid = blockIdx.x * blockDim.x + tid;
    tile[tid] = in[gid];
    for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) tile[tid] += tile[tid + s];
        __syncthreads();
    }
    if (tid == 0) out[blockIdx.x] = tile[0];
}
