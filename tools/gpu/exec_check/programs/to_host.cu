// A kernel publishes results to the host while it runs, in pinned or managed memory, with a fence that is wide enough or not.

#include "common.cuh"

enum { N = 256 };

__global__ void publish(int* results, int* flag) {
    results[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        *(volatile int*)flag = 1;
    }
}

__global__ void publish_system(int* results, int* flag) {
    results[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        *(volatile int*)flag = 1;
    }
}

// Results and how far it is, which nobody has to see in order.
__global__ void progress(int* results, int* flag) {
    for (int i = 0; i < 8; i++) {
        results[threadIdx.x] = i;
        if (threadIdx.x == 0) *(volatile int*)flag = i;
    }
}

static int run(void (*kernel)(int*, int*), bool managed) {
    int *results, *flag;
    if (managed) {
        CHECK(cudaMallocManaged(&results, N * sizeof(int)));
        CHECK(cudaMallocManaged(&flag, sizeof(int)));
    } else {
        CHECK(cudaMallocHost(&results, N * sizeof(int)));
        CHECK(cudaMallocHost(&flag, sizeof(int)));
    }
    *flag = 0;
    kernel<<<1, N>>>(results, flag);
    // Under `ptxrace exec` the kernel has ended by now.
    for (long i = 0; i < 1000000000 && *(volatile int*)flag == 0; i++);
    CHECK(cudaDeviceSynchronize());
    printf("flag %d, last result %d\n", *flag, results[N - 1]);
    return 0;
}

int main(int count, char** arguments) {
    const Scenario scenarios[] = {
        {"pinned", [] { return run(publish, false); }},
        {"pinned-system", [] { return run(publish_system, false); }},
        {"managed", [] { return run(publish, true); }},
        {"managed-system", [] { return run(publish_system, true); }},
        {"progress", [] { return run(progress, false); }},
    };
    return choose(scenarios, count, arguments);
}
