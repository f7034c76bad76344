// Two branches of a warp: the lane that works sets a flag at last, the other one looks once. Where it looks that late, it
// reads what the first has written, and nothing orders the two. R005.
extern "C" __global__ void branches(int* work, int* out)
{
    __shared__ int done, value;
    int lane = threadIdx.x;
    if (lane == 0) done = 0;
    __syncwarp();
    if (lane == 0) {
        int sum = 0;
        for (int i = 0; i < 300; i++) sum += atomicAdd(&work[i % 8], i);
        value = sum;
        atomicExch(&done, 1);
    } else if (lane == 1) {
        if (atomicAdd(&done, 0) == 1) *out = value;
    }
}
