// Two devices in one process, which reach each other's memory: default streams of each, streams, events, atomics, copies. What kernels of
// both devices do at once is printed only where that is no race.

#include "common.cuh"

enum { N = 1024, THREADS = 256, BLOCKS = N / THREADS };

__global__ void fill(int* out, int value) { out[blockIdx.x * THREADS + threadIdx.x] = value; }

__global__ void add(int* out, const int* in) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    out[i] += in[i];
}

__global__ void count(int* total) { atomicAdd(total, 1); }
__global__ void count_system(int* total) { atomicAdd_system(total, 1); }

static void use(int device) { CHECK(cudaSetDevice(device)); }

static void reach_each_other() {
    for (int own = 0; own < 2; own++) {
        use(own);
        CHECK(cudaDeviceEnablePeerAccess(1 - own, 0));
    }
    use(0);
}

static void wait(int device) {
    use(device);
    CHECK(cudaDeviceSynchronize());
}

// Both write the memory of the first, by their default streams.
static int default_streams(int waits_for) {
    reach_each_other();
    int* memory = device<int>(N);
    wait(0);
    fill<<<BLOCKS, THREADS>>>(memory, 1);
    if (waits_for >= 0) wait(waits_for);
    use(1);
    fill<<<BLOCKS, THREADS>>>(memory, 2);
    wait(1);
    wait(0);
    if (waits_for == 0) print_sum("sum", memory, N);
    else printf("done\n");
    return 0;
}

static int by_event() {
    reach_each_other();
    int *memory = device<int>(N), *other = device<int>(N);
    fill<<<BLOCKS, THREADS>>>(other, 4);
    wait(0);
    cudaStream_t first = stream();
    cudaEvent_t done = event();
    add<<<BLOCKS, THREADS, 0, first>>>(memory, other);
    CHECK(cudaEventRecord(done, first));
    use(1);
    cudaStream_t second = stream();
    CHECK(cudaStreamWaitEvent(second, done, 0));
    add<<<BLOCKS, THREADS, 0, second>>>(memory, other);
    wait(1);
    use(0);
    print_sum("sum", memory, N);
    return 0;
}

static int counter(bool system) {
    reach_each_other();
    int* total = device<int>(1);
    wait(0);
    for (int own = 0; own < 2; own++) {
        use(own);
        cudaStream_t by = stream();
        if (system) count_system<<<BLOCKS, THREADS, 0, by>>>(total);
        else count<<<BLOCKS, THREADS, 0, by>>>(total);
    }
    wait(1);
    wait(0);
    if (system) print_sum("total", total, 1);
    else printf("done\n");
    return 0;
}

// A copy from device to device by a default stream waits for those of both, and they wait for it.
static int copy(bool apart) {
    int* from = device<int>(N);
    wait(0);
    use(1);
    int* to = device<int>(N);
    wait(1);
    cudaStream_t second = apart ? stream() : cudaStreamLegacy;
    use(0);
    fill<<<BLOCKS, THREADS>>>(from, 3);
    use(1);
    if (apart) CHECK(cudaMemcpyPeerAsync(to, 1, from, 0, N * sizeof(int), second));
    else CHECK(cudaMemcpyPeer(to, 1, from, 0, N * sizeof(int)));
    add<<<BLOCKS, THREADS, 0, second>>>(to, to);
    wait(1);
    wait(0);
    use(1);
    if (apart) printf("done\n");
    else print_sum("sum", to, N);
    return 0;
}

int main(int count, char** arguments) {
    const Scenario scenarios[] = {
        {"race", [] { return default_streams(-1); }},
        {"waits", [] { return default_streams(0); }},
        {"waits-elsewhere-race", [] { return default_streams(1); }},
        {"event", by_event},
        {"counter-race", [] { return counter(false); }},
        {"counter", [] { return counter(true); }},
        {"copy", [] { return copy(false); }},
        {"copy-race", [] { return copy(true); }},
    };
    return choose(scenarios, count, arguments);
}
