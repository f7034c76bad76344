// A surface is changed in place: each thread reads its own pixel and then writes it. What it reads is what was there before
// the launch, so it does not matter that surface reads need not see writes of their own launch. The next launch reads it
// through a texture of the same array.

extern "C" __global__ void invert(cudaSurfaceObject_t surface)
{
    int x = threadIdx.x, y = blockIdx.x;
    unsigned pixel = surf2Dread<unsigned>(surface, 4 * x, y);
    surf2Dwrite<unsigned>(~pixel, surface, 4 * x, y);
}

extern "C" __global__ void read(cudaTextureObject_t texture, unsigned* out)
{
    int x = threadIdx.x, y = blockIdx.x;
    out[y * blockDim.x + x] = tex2D<unsigned>(texture, (float)x, (float)y);
}
