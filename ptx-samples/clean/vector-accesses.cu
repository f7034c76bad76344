// Vector stores of 4 and of 2 words that touch different words, or the same words by the same thread.

extern "C" __global__ void pack(const int4* in, int* out)
{
    __shared__ __align__(16) int buf[256];
    int t = threadIdx.x;
    *(int4*)&buf[t * 4] = in[t];                  // 4 words for each of 64 threads
    if (t >= 32) *(int2*)&buf[t * 4 + 2] = make_int2(-t, t);
    __syncthreads();
    for (int i = 0; i < 4; ++i) out[t * 4 + i] = buf[t * 4 + i];
}
