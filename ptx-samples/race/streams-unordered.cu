// Two kernels in two streams, one writes what the other reads, and no event makes the second wait.

extern "C" __global__ void produce(int* data) { data[threadIdx.x] = threadIdx.x * threadIdx.x; }

extern "C" __global__ void consume(const int* data, int* out) { out[threadIdx.x] = data[63 - threadIdx.x]; }
