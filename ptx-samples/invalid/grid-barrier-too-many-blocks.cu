// A barrier of the grid, by a counter, with more blocks than are resident at once. S003: those that wait keep the others from
// starting, and the counter from getting there.
extern "C" __global__ void phases(unsigned* arrived, int* out)
{
    out[blockIdx.x] = 1;
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (atomicAdd(arrived, 0u) != gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
    out[blockIdx.x] += out[(blockIdx.x + 1) % gridDim.x];
}
