// The second warp says that it has started; the first one looks for that when its long work is done, and leaves the data to
// the second one if so. It writes the data where the second warp starts late, which then writes it, too. R001.
extern "C" __global__ void fill(int* work, int* data)
{
    __shared__ int started;
    if (threadIdx.x == 0) started = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < 300; i++) sum += atomicAdd(&work[i % 8], i);
        if (atomicAdd(&started, 0) == 0) *data = sum;
    } else if (threadIdx.x == 32) {
        atomicExch(&started, 1);
        *data = -1;
    }
}
