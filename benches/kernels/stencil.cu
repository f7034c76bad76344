// The mean of four neighbours.
extern "C" __global__ void stencil(const float* in, float* out, int n)
{
    int x = blockIdx.x * 32 + threadIdx.x + 1;
    int y = blockIdx.y * 8 + threadIdx.y + 1;
    if (x < n - 1 && y < n - 1)
        out[y * n + x] = 0.25f * (in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x] + in[(y + 1) * n + x]);
}
