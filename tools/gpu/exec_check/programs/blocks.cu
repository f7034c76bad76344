// Races and order inside of one launch, and kernels of all kinds: large blocks, dynamic shared memory, variables, printf, templates.

#include <cooperative_groups.h>

#include "common.cuh"

namespace groups = cooperative_groups;

enum { BLOCKS = 8, THREADS = 256, N = BLOCKS * THREADS };

__constant__ int offset = 1;
__device__ int counted;

// Sums each block's part in shared memory.
__global__ void reduce(const int* in, int* out) {
    __shared__ int tile[THREADS];
    int t = threadIdx.x;
    tile[t] = in[blockIdx.x * THREADS + t];
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (t < half) tile[t] += tile[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = tile[0];
}

// Reads what another warp has written, without a barrier. What is read goes where nobody looks.
__global__ void unsynchronised(int* out, int* sink) {
    __shared__ int tile[THREADS];
    int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    tile[t] = i;
    sink[i] = tile[THREADS - 1 - t];
    out[i] = 1;
}

// Block 0 publishes data by a flag that carries no order, or one that does.
template <bool ORDERED>
__global__ void publish(int* data, int* flag, int* sink, int* out) {
    if (blockIdx.x == 0) {
        data[0] = 42;
        if (ORDERED) __threadfence();
        asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        int seen = 0;
        for (int i = 0; i < 1000000 && !seen; i++)
            asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        if (ORDERED) __threadfence();
        if (seen) sink[0] = data[0];
    }
    out[blockIdx.x] = 7;
}

// Each block reads what another has written before a barrier of the whole grid.
__global__ void cooperative(int* data, int* out) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    data[i] = i;
    groups::this_grid().sync();
    out[i] = data[N - 1 - i];
}

// The same without that barrier.
__global__ void uncooperative(int* data, int* sink, int* out) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    data[i] = i;
    sink[i] = data[N - 1 - i];
    out[i] = 1;
}

// Has more live values than a block of 1,024 threads has registers for, if instrumentation needs many.
__global__ void large(const int* in, int* out) {
    int values[24];
    int i = threadIdx.x;
#pragma unroll
    for (int k = 0; k < 24; k++) values[k] = in[(i + k * 37) % 1024];
    __syncthreads();
#pragma unroll
    for (int round = 0; round < 4; round++)
#pragma unroll
        for (int k = 0; k < 24; k++) values[k] = values[k] * 3 + values[(k + 7) % 24];
    int sum = 0;
#pragma unroll
    for (int k = 0; k < 24; k++) sum ^= values[k] >> k;
    out[i] = sum & 1023;
}

__global__ void dynamic(int* out, int words) {
    extern __shared__ int tile[];
    for (int i = threadIdx.x; i < words; i += blockDim.x) tile[i] = i;
    __syncthreads();
    int sum = 0;
    for (int i = threadIdx.x; i < words; i += blockDim.x) sum += tile[words - 1 - i] & 1;
    out[threadIdx.x] = sum;
}

__global__ void variables() { atomicAdd(&counted, offset); }

__global__ void speak(int value) {
    if (threadIdx.x == 0) printf("kernel says %d\n", value);
}

__global__ void clusters(int* out, bool wait) {
#if __CUDA_ARCH__ >= 900
    __shared__ int mine;
    groups::cluster_group cluster = groups::this_cluster();
    // Shared memory of a block that has not begun may not be accessed.
    cluster.sync();
    if (threadIdx.x == 0) mine = (int)blockIdx.x + 1;
    if (wait) cluster.sync();
    int* other = cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
    int seen = 0;
    if (threadIdx.x == 0) seen = *other;
    cluster.sync();
    if (threadIdx.x == 0) out[blockIdx.x] = wait ? seen : seen < 0;
#endif
}

static int clean() {
    int host[N];
    for (int i = 0; i < N; i++) host[i] = i % 10;
    int *in = device<int>(N), *out = device<int>(BLOCKS);
    CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
    reduce<<<BLOCKS, THREADS>>>(in, out);
    CHECK(cudaGetLastError());
    print_sum("sum", out, BLOCKS);
    return 0;
}

static int shared_race() {
    int *out = device<int>(N), *sink = device<int>(N);
    unsynchronised<<<BLOCKS, THREADS>>>(out, sink);
    print_sum("ones", out, N);
    return 0;
}

template <bool ORDERED>
static int publication() {
    int *data = device<int>(1), *flag = device<int>(1), *sink = device<int>(1), *out = device<int>(2);
    publish<ORDERED><<<2, 1>>>(data, flag, sink, out);
    print_sum("sevens", out, 2);
    print_sum("data", data, 1);
    return 0;
}

static int cooperate() {
    int *data = device<int>(N), *out = device<int>(N);
    void* arguments[] = {&data, &out};
    CHECK(cudaLaunchCooperativeKernel((void*)cooperative, BLOCKS, THREADS, arguments, 0, 0));
    print_sum("sum", out, N);
    return 0;
}

static int grid_race() {
    int *data = device<int>(N), *sink = device<int>(N), *out = device<int>(N);
    uncooperative<<<BLOCKS, THREADS>>>(data, sink, out);
    print_sum("ones", out, N);
    return 0;
}

static int large_block() {
    int host[1024];
    for (int i = 0; i < 1024; i++) host[i] = i;
    int *in = device<int>(1024), *out = device<int>(1024);
    CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
    large<<<1, 1024>>>(in, out);
    CHECK(cudaGetLastError());
    print_sum("sum", out, 1024);
    return 0;
}

static int dynamic_shared() {
    const int words = 25000;
    int* out = device<int>(THREADS);
    CHECK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, words * 4));
    int blocks;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, dynamic, THREADS, words * 4));
    dynamic<<<1, THREADS, words * 4>>>(out, words);
    CHECK(cudaGetLastError());
    printf("fits: %d\n", blocks > 0);
    print_sum("odd", out, THREADS);
    return 0;
}

static int symbols() {
    int add = 3, total = 5;
    CHECK(cudaMemcpyToSymbol(offset, &add, sizeof add));
    CHECK(cudaMemcpyToSymbol(counted, &total, sizeof total));
    variables<<<2, 64>>>();
    CHECK(cudaMemcpyFromSymbol(&total, counted, sizeof total));
    printf("total: %d\n", total);
    return 0;
}

static int print() {
    speak<<<1, 32>>>(17);
    CHECK(cudaDeviceSynchronize());
    return 0;
}

static int cluster(bool wait) {
    int* out = device<int>(4);
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {2, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = 4;
    config.blockDim = 32;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, clusters, out, wait));
    print_sum("ranks", out, 4);
    return 0;
}

int main(int count, char** arguments) {
    const Scenario scenarios[] = {
        {"clean", clean},
        {"shared-race", shared_race},
        {"publish-race", publication<false>},
        {"publish", publication<true>},
        {"cooperative", cooperate},
        {"grid-race", grid_race},
        {"large-block", large_block},
        {"dynamic-shared", dynamic_shared},
        {"symbols", symbols},
        {"print", print},
        {"cluster", [] { return cluster(true); }},
        {"cluster-race", [] { return cluster(false); }},
    };
    return choose(scenarios, count, arguments);
}
