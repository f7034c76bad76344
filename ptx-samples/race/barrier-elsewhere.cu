// Two warps wait for each other at different barriers, each for the whole block: neither ever goes on.
extern "C" __global__ void crossed(int* out)
{
    if (threadIdx.x < 32) asm volatile("bar.sync 1;" ::: "memory");
    else                  asm volatile("bar.sync 2;" ::: "memory");
    out[threadIdx.x] = 1;
}
