// The other file of `linked_main.cu`.

__device__ int shared_offset = 5;

__device__ int reversed(int* tile, int t) { return tile[63 - t]; }
