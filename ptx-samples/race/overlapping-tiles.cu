// Tiles of 64 elements at a distance of 60: the last 4 of each block are the first 4 of the next, and the two
// blocks store different values.

extern "C" __global__ void fill(int* out, int stride)
{
    out[blockIdx.x * stride + threadIdx.x] = blockIdx.x * 1000 + threadIdx.x;
}
