// Each half of the block meets at a barrier of its own and then reads what the other half stored. The two
// barriers synchronize only threads of the same half.

extern "C" __global__ void halves(const int* in, int* out)
{
    __shared__ int buf[128];
    int t = threadIdx.x, half = t / 64;
    buf[t] = in[t];
    if (half == 0) asm volatile("bar.sync 1, 64;" ::: "memory");
    else           asm volatile("bar.sync 2, 64;" ::: "memory");
    out[t] = buf[127 - t];
}
