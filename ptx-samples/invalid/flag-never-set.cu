// Block 0 waits for a flag that block 1 sets only where it finds work, and there is none. S003: whoever could set the flag
// has ended.
extern "C" __global__ void wait(int* flag, const int* work, int* out)
{
    if (blockIdx.x == 1) {
        if (work[threadIdx.x] != 0) atomicExch(flag, 1);
        return;
    }
    if (threadIdx.x == 0) {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence();
    }
    __syncthreads();
    out[threadIdx.x] = 1;
}
