// ldmatrix reads rows that other threads have copied: a wait for the group, then a barrier.
#include "../async.cuh"

extern "C" __global__ void load_matrix(const int4* in, int* out)
{
    __shared__ int4 rows[2][8];
    int t = threadIdx.x, lane = t % 32;
    if (t < 16) COPY16(&rows[t / 8][t % 8], &in[t]);
    COMMIT();
    WAIT(0);
    __syncthreads();
    int r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(SMEM(&rows[1][lane % 8])) : "memory");
    out[t] = r;
}
