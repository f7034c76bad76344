// A smoothing step reads its neighbours through a texture of the very buffer that it has just updated. The barrier
// orders the store before the fetch, but textures are cached and their caches are not kept coherent: a fetch of what
// the same launch writes gives anything.

extern "C" __global__ void smooth(float* data, cudaTextureObject_t texture, float* out)
{
    int i = threadIdx.x;
    data[i] = 2.0f * data[i];
    __syncthreads();
    out[i] = tex1Dfetch<float>(texture, (i + 1) % blockDim.x);
}
