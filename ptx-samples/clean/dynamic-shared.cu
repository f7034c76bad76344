// Shared memory whose size the launch gives, with the barrier between store and load.

extern __shared__ int buf[];

extern "C" __global__ void rotate(const int* in, int* out)
{
    int t = threadIdx.x;
    buf[t] = in[t];
    __syncthreads();
    out[t] = buf[(t + 32) % blockDim.x];
}
