// Atomics of block scope on a word that only one block touches.

extern "C" __global__ void count(unsigned* hits)
{
    atomicAdd_block(&hits[blockIdx.x], 1);
}
