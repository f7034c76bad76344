// Textures and surfaces by the runtime: of linear memory, of rows, of arrays.

#include "common.cuh"

enum { N = 256, ROWS = 8 };

__global__ void scale(float* data) { data[threadIdx.x] = 2.0f * data[threadIdx.x]; }

__global__ void fetch(cudaTextureObject_t texture, float* out) { out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x); }

__global__ void scale_and_fetch(float* data, cudaTextureObject_t texture, float* out) {
    data[threadIdx.x] = 2.0f * data[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tex1Dfetch<float>(texture, (threadIdx.x + 1) % N);
}

__global__ void enlarge(cudaTextureObject_t texture, float* out) {
    float x = (threadIdx.x + 0.5f) * 0.5f, y = (blockIdx.x + 0.5f) * 0.5f;
    out[blockIdx.x * N + threadIdx.x] = tex2D<float>(texture, x, y);
}

__global__ void draw(cudaSurfaceObject_t surface, int shift) {
    surf2Dwrite<float>(threadIdx.x + 1000.0f * blockIdx.x, surface, 4 * threadIdx.x, blockIdx.x * shift);
}

__global__ void invert(cudaSurfaceObject_t surface) {
    float pixel = surf2Dread<float>(surface, 4 * threadIdx.x, blockIdx.x);
    surf2Dwrite<float>(-pixel, surface, 4 * threadIdx.x, blockIdx.x);
}

__global__ void shift(cudaSurfaceObject_t surface, float* out) {
    surf2Dwrite<float>(threadIdx.x, surface, 4 * threadIdx.x, 0);
    out[threadIdx.x] = surf2Dread<float>(surface, 4 * ((threadIdx.x + 32) % N), 0);
}

static void print_floats(const char* what, const float* memory, int count) {
    float* host = (float*)malloc(count * sizeof(float));
    CHECK(cudaMemcpy(host, memory, count * sizeof(float), cudaMemcpyDeviceToHost));
    unsigned bits = 0;
    for (int i = 0; i < count; i++) {
        unsigned own;
        memcpy(&own, &host[i], 4);
        bits = bits * 31 + own;
    }
    printf("%s: %08x\n", what, bits);
    free(host);
}

static float* numbers(int count) {
    float* host = (float*)malloc(count * sizeof(float));
    for (int i = 0; i < count; i++) host[i] = 0.25f * i;
    float* memory = device<float>(count);
    CHECK(cudaMemcpy(memory, host, count * sizeof(float), cudaMemcpyHostToDevice));
    free(host);
    return memory;
}

static cudaTextureObject_t texture(const cudaResourceDesc& resource, cudaTextureFilterMode filter) {
    cudaTextureDesc reading = {};
    reading.addressMode[0] = reading.addressMode[1] = cudaAddressModeClamp;
    reading.filterMode = filter;
    cudaTextureObject_t made;
    CHECK(cudaCreateTextureObject(&made, &resource, &reading, nullptr));
    return made;
}

static cudaTextureObject_t linear(float* memory) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = memory;
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = N * sizeof(float);
    return texture(resource, cudaFilterModePoint);
}

static cudaArray_t array() {
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t made;
    CHECK(cudaMallocArray(&made, &format, N, ROWS, cudaArraySurfaceLoadStore));
    return made;
}

static cudaResourceDesc of(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}

static cudaSurfaceObject_t surface(cudaArray_t array) {
    cudaResourceDesc resource = of(array);
    cudaSurfaceObject_t made;
    CHECK(cudaCreateSurfaceObject(&made, &resource));
    return made;
}

static int of_memory() {
    float *data = numbers(N), *out = device<float>(N);
    cudaTextureObject_t seen = linear(data);
    scale<<<1, N>>>(data);
    fetch<<<1, N>>>(seen, out);
    print_floats("fetched", out, N);
    CHECK(cudaDestroyTextureObject(seen));
    return 0;
}

static int of_memory_race() {
    float *data = numbers(N), *out = device<float>(N);
    scale_and_fetch<<<1, N>>>(data, linear(data), out);
    CHECK(cudaDeviceSynchronize());
    printf("done\n");
    return 0;
}

static int of_rows() {
    float* from = numbers(N * ROWS);
    void* memory;
    size_t pitch;
    CHECK(cudaMallocPitch(&memory, &pitch, N * sizeof(float), ROWS));
    CHECK(cudaMemcpy2D(memory, pitch, from, N * 4, N * 4, ROWS, cudaMemcpyDeviceToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = memory;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = N;
    resource.res.pitch2D.height = ROWS;
    resource.res.pitch2D.pitchInBytes = pitch;
    float* out = device<float>(N * 2 * ROWS);
    enlarge<<<2 * ROWS, N>>>(texture(resource, cudaFilterModeLinear), out);
    print_floats("enlarged", out, N * 2 * ROWS);
    return 0;
}

static int of_array() {
    float *from = numbers(N * ROWS), *out = device<float>(N * 2 * ROWS), *back = device<float>(N * ROWS);
    cudaArray_t pixels = array();
    CHECK(cudaMemcpy2DToArray(pixels, 0, 0, from, N * 4, N * 4, ROWS, cudaMemcpyDeviceToDevice));
    cudaResourceDesc resource = of(pixels);
    cudaTextureObject_t seen = texture(resource, cudaFilterModeLinear);
    enlarge<<<2 * ROWS, N>>>(seen, out);
    print_floats("enlarged", out, N * 2 * ROWS);
    invert<<<ROWS, N>>>(surface(pixels));
    enlarge<<<2 * ROWS, N>>>(seen, out);
    print_floats("inverted", out, N * 2 * ROWS);
    CHECK(cudaMemcpy2DFromArray(back, N * 4, pixels, 0, 0, N * 4, ROWS, cudaMemcpyDeviceToDevice));
    print_floats("copied", back, N * ROWS);
    CHECK(cudaDestroyTextureObject(seen));
    CHECK(cudaFreeArray(pixels));
    return 0;
}

static int drawn() {
    draw<<<ROWS, N>>>(surface(array()), 1);
    CHECK(cudaDeviceSynchronize());
    printf("done\n");
    return 0;
}

static int drawn_race() {
    draw<<<ROWS, N>>>(surface(array()), 0);
    CHECK(cudaDeviceSynchronize());
    printf("done\n");
    return 0;
}

static int shifted_race() {
    shift<<<1, N>>>(surface(array()), device<float>(N));
    CHECK(cudaDeviceSynchronize());
    printf("done\n");
    return 0;
}

static int copied_race() {
    cudaArray_t pixels = array();
    float* back;
    CHECK(cudaMallocHost(&back, N * ROWS * 4));
    cudaStream_t first = stream(), second = stream();
    draw<<<ROWS, N, 0, first>>>(surface(pixels), 1);
    CHECK(cudaMemcpy2DFromArrayAsync(back, N * 4, pixels, 0, 0, N * 4, ROWS, cudaMemcpyDeviceToHost, second));
    CHECK(cudaDeviceSynchronize());
    printf("done\n");
    return 0;
}

int main(int count, char** arguments) {
    const Scenario scenarios[] = {
        {"memory", of_memory},         {"memory-race", of_memory_race}, {"rows", of_rows},
        {"array", of_array},           {"drawn", drawn},                {"drawn-race", drawn_race},
        {"shifted-race", shifted_race}, {"copied-race", copied_race},
    };
    return choose(scenarios, count, arguments);
}
