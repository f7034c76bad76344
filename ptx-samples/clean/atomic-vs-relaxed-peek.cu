// One block counts down atomically, the other peeks with a relaxed load. Both are strong with a scope that
// covers the other, so they never race; what the load sees is open.
extern "C" __global__ void drain(int* work, int* out)
{
    if (blockIdx.x == 0) {
        atomicSub(work, 1);
    } else if (threadIdx.x == 0) {
        int left;
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(left) : "l"(work) : "memory");
        out[0] = left;
    }
}
