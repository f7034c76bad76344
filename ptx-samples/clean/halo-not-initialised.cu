// A buffer that was allocated and not filled: the kernel fills all but its ends, and then reads them, too. M004.
extern "C" __global__ void fill(float* field, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) field[i] = (float)i;
}

extern "C" __global__ void smooth(const float* field, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = (field[i - 1] + field[i] + field[i + 1]) / 3;
}
