// The twin of race/texture-after-store: the update and the reading are two launches, and what an earlier launch has
// written a texture sees.

extern "C" __global__ void update(float* data)
{
    data[threadIdx.x] = 2.0f * data[threadIdx.x];
}

extern "C" __global__ void smooth(cudaTextureObject_t texture, float* out)
{
    int i = threadIdx.x;
    out[i] = tex1Dfetch<float>(texture, (i + 1) % blockDim.x);
}
