// Every thread that finds something stores the same 1, and one thread of each block reads it without waiting
// for the other blocks: what it sees depends on timing, so the equal values excuse nothing.

extern "C" __global__ void find(const int* in, int* found, int* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] % 8 == 3) found[0] = 1;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = found[0];
}
