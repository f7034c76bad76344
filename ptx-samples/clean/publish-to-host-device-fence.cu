// Results and a flag lie in memory of the host, whose thread polls the flag while the kernel runs. Host threads are in scope `.sys`
// alone, and `__threadfence()` is for the device: the host may see the flag and old results. A warning, as what the host does is not seen.

extern "C" __global__ void publish(int* results, int* flag)
{
    results[threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        *(volatile int*)flag = 1;
    }
}
