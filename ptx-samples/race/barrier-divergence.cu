// The lanes of one warp wait at two different barrier instructions. `bar.sync` is aligned: all threads of a warp
// have to execute the same one together.
extern "C" __global__ void diverge(const int* in, int* out)
{
    int t = threadIdx.x;
    if (in[t] % 2 == 0) {
        asm volatile("bar.sync 0;" ::: "memory");
        out[t] = 1;
    } else {
        asm volatile("bar.sync 0;" ::: "memory");
        out[t] = 2;
    }
}
