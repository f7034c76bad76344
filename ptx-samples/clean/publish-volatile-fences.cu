// A volatile flag between system fences: volatile is a relaxed access of system scope, which is all that the
// fences need.

extern "C" __global__ void publish(int* data, unsigned* flag, int* out)
{
    if (blockIdx.x == 0) {                                  // writer
        data[0] = 42;
        __threadfence_system();
        *(volatile unsigned*)flag = 1;
    } else {                                                // reader
        unsigned seen = 0;
        for (int i = 0; i < 1000000 && !seen; ++i)
            seen = *(volatile unsigned*)flag;
        if (!seen) return;
        __threadfence_system();
        out[0] = data[0];
    }
}
