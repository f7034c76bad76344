// A shuffle that all 32 lanes execute, with a mask that names 16 of them.
extern "C" __global__ void half_shuffle(const int* in, int* out)
{
    int lane = threadIdx.x;
    out[lane] = __shfl_xor_sync(0x0000ffffu, in[lane], 1);
}
