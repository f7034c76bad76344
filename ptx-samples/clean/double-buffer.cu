// Two tiles taken in turn, with one barrier per trip: a store to a tile and the reads of it two trips before have
// the barrier of the trip between them.
__global__ void blur(const int* in, int* out, int trips)
{
    __shared__ int tile[2][64];
    int t = threadIdx.x, sum = 0;
    for (int i = 0; i < trips; ++i) {
        tile[i & 1][t] = in[i * 64 + t];
        __syncthreads();
        sum += tile[i & 1][(t + 32) & 63];
    }
    out[t] = sum;
}
