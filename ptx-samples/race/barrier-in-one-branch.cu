// A barrier inside a branch that only some lanes of a warp take. The other lanes are alive and wait at the
// shuffle behind it, for the lanes at the barrier, which wait for them.
extern "C" __global__ void partial(const int* in, int* out)
{
    __shared__ int s[64];
    int t = threadIdx.x, v = in[t];
    if (t >= 8) {
        s[t] = v;
        asm volatile("bar.sync 0;" ::: "memory");
        v = s[(t + 28) % 56 + 8];
    }
    for (int d = 16; d > 0; d >>= 1) v = max(v, __shfl_xor_sync(0xffffffffu, v, d));
    out[t] = v;
}
