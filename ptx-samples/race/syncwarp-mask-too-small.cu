// All 32 lanes execute a warp barrier whose mask names only the lower 16. A lane may not execute one that leaves
// it out.
extern "C" __global__ void half_mask(const int* in, int* out)
{
    int lane = threadIdx.x, v = in[lane];
    __syncwarp(0x0000ffffu);
    out[lane] = v;
}
