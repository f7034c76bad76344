// Producer and consumer warp around one slot: `bar.arrive` orders the earlier accesses of one warp before
// what the other does after its `bar.sync`. One barrier says full, another says empty.

extern "C" __global__ void pipe(const int* in, int* out)
{
    __shared__ int slot[32];
    int lane = threadIdx.x & 31, sum = 0;
    for (int i = 0; i < 4; ++i) {
        if (threadIdx.x < 32) {                                     // producer warp
            asm volatile("bar.sync 2, 64;" ::: "memory");           // until the slot is empty
            slot[lane] = in[i * 32 + lane];
            asm volatile("bar.arrive 1, 64;" ::: "memory");         // the slot is full
        } else {                                                    // consumer warp
            asm volatile("bar.arrive 2, 64;" ::: "memory");         // the slot is empty
            asm volatile("bar.sync 1, 64;" ::: "memory");           // until the slot is full
            sum += slot[31 - lane];
        }
    }
    if (threadIdx.x >= 32) out[lane] = sum;
}
