// The usual bounds check: threads past the end return, the others go on to a barrier. A thread that has exited
// no longer counts, so the barrier does not miss it.
extern "C" __global__ void reverse(const int* in, int* out, int n)
{
    __shared__ int s[128];
    int t = threadIdx.x;
    if (t >= n) return;
    s[t] = in[t];
    __syncthreads();
    out[t] = s[n - 1 - t];
}
