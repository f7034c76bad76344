// The lanes of one store instruction put different values into one word. One of them stays, which one is not
// said: worth a warning, but CUDA promises that the store itself is sound.
extern "C" __global__ void last_lane(int* out)
{
    out[0] = threadIdx.x;
}
