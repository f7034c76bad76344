// A 4-byte load from an address that is no multiple of 4.
extern "C" __global__ void peek(const char* in, int* out) { out[0] = *(const int*)(in + 1); }
