// Lanes of one warp store to one word in the two branches of an `if`. These are two instructions; a warp
// promises no order between its branches, so any of the values may stay.
extern "C" __global__ void pick(const int* in, int* out)
{
    __shared__ int winner;
    int lane = threadIdx.x;
    if (in[lane] < 16) {
        if (lane == 3) asm volatile("st.shared.u32 [%0], %1;" :: "l"(__cvta_generic_to_shared(&winner)), "r"(lane) : "memory");
    } else {
        if (lane == 20) asm volatile("st.shared.u32 [%0], %1;" :: "l"(__cvta_generic_to_shared(&winner)), "r"(-lane) : "memory");
    }
    __syncwarp();
    out[lane] = winner;
}
