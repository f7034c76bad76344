// Sum over one warp that trusts lockstep: lanes may run apart, and nothing orders the read of a neighbour's
// element against the neighbour's stores. The empty `asm` only keeps the compiler from reordering.

extern "C" __global__ void warp_sum(const int* in, int* out)
{
    __shared__ int s[64];
    int lane = threadIdx.x;
    s[lane] = in[lane];
    s[lane + 32] = 0;
    asm volatile("" ::: "memory");
    for (int d = 16; d > 0; d >>= 1) {
        s[lane] += s[lane + d];
        asm volatile("" ::: "memory");
    }
    if (lane == 0) out[0] = s[0];
}
