// Each warp as a whole waits at the barrier, but at different instructions. That is aligned, because all lanes of
// a warp agree, and it is one barrier, because both name number 0.
extern "C" __global__ void branches(const int* in, int* out)
{
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 32) {
        s[t] = in[t];
        asm volatile("bar.sync 0;" ::: "memory");
        out[t] = s[t + 32];
    } else {
        s[t] = -in[t];
        asm volatile("bar.sync 0;" ::: "memory");
        out[t] = s[t - 32];
    }
}
