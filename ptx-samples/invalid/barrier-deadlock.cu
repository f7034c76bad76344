// A named barrier for 64 threads in a block that has 32: it never completes.
extern "C" __global__ void meet(int* out)
{
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x] = 1;
}
