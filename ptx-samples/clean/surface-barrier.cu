// The twin of race/surface-no-barrier. The barrier orders the writes before the reads, so that it is no race; yet the CUDA
// programming guide promises nothing of surface reads of what the same launch has written, which is a warning.

extern "C" __global__ void shift(cudaSurfaceObject_t surface, unsigned* out)
{
    unsigned i = threadIdx.x;
    surf1Dwrite<unsigned>(i, surface, 4 * i);
    __syncthreads();
    out[i] = surf1Dread<unsigned>(surface, 4 * ((i + 32) % blockDim.x));
}
