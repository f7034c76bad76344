// Threads store to different bytes of the same words, and different halves of the same words: different memory
// locations, however small, are independent.
extern "C" __global__ void bytes(unsigned char* b, unsigned short* h)
{
    int t = threadIdx.x;
    b[t] = t;
    if (t & 1) h[t / 2] = t;
}
