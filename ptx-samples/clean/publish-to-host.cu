// Results and a flag lie in memory of the host, whose thread polls the flag while the kernel runs. Host threads are in scope `.sys`
// alone, so the fence between has to be `__threadfence_system()`; the volatile store is of that scope itself.

extern "C" __global__ void publish(int* results, int* flag)
{
    results[threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        *(volatile int*)flag = 1;
    }
}
