// The flag is volatile. PTX takes that for a relaxed access of system scope: the flag is no race, but volatile
// orders nothing else, so the data is.

extern "C" __global__ void publish(int* data, unsigned* flag, int* out)
{
    if (blockIdx.x == 0) {                                  // writer
        data[0] = 42;
        *(volatile unsigned*)flag = 1;
    } else {                                                // reader
        unsigned seen = 0;
        for (int i = 0; i < 1000000 && !seen; ++i)
            seen = *(volatile unsigned*)flag;
        if (!seen) return;
        out[0] = data[0];
    }
}
