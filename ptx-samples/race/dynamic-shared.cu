// Shared memory whose size the launch gives. Each thread reads the element of a thread one warp further, with
// no barrier after the stores.

extern __shared__ int buf[];

extern "C" __global__ void rotate(const int* in, int* out)
{
    int t = threadIdx.x;
    buf[t] = in[t];
    out[t] = buf[(t + 32) % blockDim.x];
}
