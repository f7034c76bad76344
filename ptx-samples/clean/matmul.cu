// Tiled matrix product: one barrier after filling the tiles, one before the next trip fills them again.

#define TILE 32

extern "C" __global__ void matmul(const int* a, const int* b, int* c, int n)
{
    __shared__ int as[TILE][TILE];
    __shared__ int bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    int sum = 0;
    for (int tile = 0; tile < n / TILE; ++tile) {
        as[ty][tx] = a[row * n + tile * TILE + tx];
        bs[ty][tx] = b[(tile * TILE + ty) * n + col];
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += as[ty][k] * bs[k][tx];
        __syncthreads();
    }
    c[row * n + col] = sum;
}
