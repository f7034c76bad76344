// Two warps at one barrier that disagree on how many threads it waits for.
extern "C" __global__ void counts(int* out)
{
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
    else                  asm volatile("bar.sync 1, 96;" ::: "memory");
    out[threadIdx.x] = 1;
}
