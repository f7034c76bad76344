// The same functions, called with pointers to shared and to global memory; a barrier orders the exchange.

__device__ __noinline__ void put(int* where, int value) { *where = value; }
__device__ __noinline__ int get(const int* where)
{
    int value;
    asm volatile("ld.u32 %0, [%1];" : "=r"(value) : "l"(where) : "memory");
    return value;
}

extern "C" __global__ void swap_halves(const int* in, int* out)
{
    __shared__ int buf[64];
    int t = threadIdx.x;
    put(&buf[t], in[t]);
    __syncthreads();
    put(&out[t], get(&buf[t ^ 32]));
}
