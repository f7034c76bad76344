// Structures are copied with what lies between their members, values are read ahead and dropped, and what lies in the array
// past its end is not looked at: nothing that was never written is used.
struct alignas(16) Item { char kind; double weight; int count; };

extern "C" __global__ void items(Item* out, int* kinds, int n)
{
    __shared__ Item items[64];
    __shared__ int ahead[65];
    int t = threadIdx.x;
    items[t].kind = (char)t;
    items[t].weight = t * 0.5;
    items[t].count = t;
    if (t < n) ahead[t] = t;
    __syncthreads();
    int other = (t + 32) % 64;
    out[t] = items[other];
    int now = ahead[0], sum = 0;
    for (int i = 0; i < n; i++) {
        int next = ahead[i + 1];
        sum += now;
        now = next;
    }
    kinds[t] = sum + items[other].kind;
}
