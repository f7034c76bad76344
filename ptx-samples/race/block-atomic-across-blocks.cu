// Blocks count into one word with atomics of block scope. Such an atomic is atomic only for the threads of its
// own block; between blocks it races.

extern "C" __global__ void count(unsigned* hits)
{
    atomicAdd_block(hits, 1);
}
