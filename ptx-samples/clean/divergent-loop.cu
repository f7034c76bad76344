// Lanes leave a loop after different numbers of trips, meet at a warp barrier and then read a neighbour's sum.
extern "C" __global__ void triangle(const int* in, int* out)
{
    __shared__ int s[32];
    int lane = threadIdx.x;
    s[lane] = 0;
    for (int i = 0; i <= in[lane]; ++i) {
        s[lane] += i;
        asm volatile("" ::: "memory");                      // keep the sum in memory
    }
    __syncwarp();
    out[lane] = s[(lane + 1) & 31] - s[lane];
}
