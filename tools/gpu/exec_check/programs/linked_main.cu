// Relocatable device code: the kernel's race is in a function of the other file.

#include "common.cuh"

enum { THREADS = 64 };

__device__ int reversed(int* tile, int t);
extern __device__ int shared_offset;

__global__ void kernel(int* out, int* sink, bool wait) {
    __shared__ int tile[THREADS];
    int t = threadIdx.x;
    tile[t] = t + shared_offset;
    if (wait) __syncthreads();
    sink[t] = reversed(tile, t);
    out[t] = 1;
}

static int run(bool wait) {
    int *out = device<int>(THREADS), *sink = device<int>(THREADS);
    kernel<<<1, THREADS>>>(out, sink, wait);
    CHECK(cudaGetLastError());
    print_sum("ones", out, THREADS);
    return 0;
}

int main(int count, char** arguments) {
    const Scenario scenarios[] = {{"clean", [] { return run(true); }}, {"race", [] { return run(false); }}};
    return choose(scenarios, count, arguments);
}
