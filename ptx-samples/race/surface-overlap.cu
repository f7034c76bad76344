// Two blocks draw into one surface, and their columns overlap by one: which pixel stays is not specified.

extern "C" __global__ void draw(cudaSurfaceObject_t surface)
{
    int x = blockIdx.x * (blockDim.x - 1) + threadIdx.x;
    surf2Dwrite<unsigned>(blockIdx.x, surface, 4 * x, 0);
}
