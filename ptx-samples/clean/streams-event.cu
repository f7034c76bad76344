// Two kernels in two streams; the second waits for an event recorded behind the first.

extern "C" __global__ void produce(int* data) { data[threadIdx.x] = threadIdx.x * threadIdx.x; }

extern "C" __global__ void consume(const int* data, int* out) { out[threadIdx.x] = data[63 - threadIdx.x]; }
