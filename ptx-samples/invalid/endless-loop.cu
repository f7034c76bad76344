// Waits for a flag that nobody sets, and counts how often: it never comes back to a state that it was in.
extern "C" __global__ void wait(volatile int* flag)
{
    int tries = 0;
    while (*flag == 0) tries += 3;
    *flag = tries;
}
