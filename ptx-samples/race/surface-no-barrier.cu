// Threads hand pixels to each other through a surface without a barrier.

extern "C" __global__ void shift(cudaSurfaceObject_t surface, unsigned* out)
{
    unsigned i = threadIdx.x;
    surf1Dwrite<unsigned>(i, surface, 4 * i);
    out[i] = surf1Dread<unsigned>(surface, 4 * ((i + 32) % blockDim.x));
}
