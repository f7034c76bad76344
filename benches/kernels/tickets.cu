// Warps draw tickets for their items from a counter and mark what they got: an atomic of one lane for every few accesses.
extern "C" __global__ void tickets(unsigned* counter, unsigned* marks, int rounds)
{
    int lane = threadIdx.x & 31;
    for (int k = 0; k < rounds; k++) {
        unsigned ticket = 0;
        if (lane == 0)
            ticket = atomicAdd(counter, 1u);
        ticket = __shfl_sync(0xffffffffu, ticket, 0);
        if (lane == 0)
            atomicAdd(&marks[ticket & 1023], 1u);
    }
}
