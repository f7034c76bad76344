// Vector stores that share words: 4 words of each thread, and then 2 words of the second warp inside those of
// the first. Each element of a vector is an access of its own, so the two conflict at equal size.

extern "C" __global__ void pack(const int4* in, int* out)
{
    __shared__ __align__(16) int buf[256];
    int t = threadIdx.x;
    *(int4*)&buf[t * 4] = in[t];                  // 4 words for each of 64 threads
    if (t >= 32) *(int2*)&buf[(t - 32) * 4 + 2] = make_int2(-t, t);
    __syncthreads();
    for (int i = 0; i < 4; ++i) out[t * 4 + i] = buf[t * 4 + i];
}
