// Sum over one warp with a warp barrier between the reads and the stores of each step.

extern "C" __global__ void warp_sum(const int* in, int* out)
{
    __shared__ int s[64];
    int lane = threadIdx.x;
    s[lane] = in[lane];
    s[lane + 32] = 0;
    __syncwarp();
    for (int d = 16; d > 0; d >>= 1) {
        int sum = s[lane] + s[lane + d];
        __syncwarp();
        s[lane] = sum;
        __syncwarp();
    }
    if (lane == 0) out[0] = s[0];
}
