// Order between launches, copies and allocations: streams, events, the host, threads.

#include <thread>
#include <vector>

#include "common.cuh"

enum { N = 1024, THREADS = 256, BLOCKS = N / THREADS };

__global__ void fill(int* out, int value) { out[blockIdx.x * THREADS + threadIdx.x] = value; }

__global__ void add(int* out, const int* in) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    out[i] += in[i];
}

enum class Wait { Nothing, Event, Stream, Device, EventOnHost };

// Makes `later` wait for what is in `earlier`, in one way or another.
static void order(Wait how, cudaStream_t earlier, cudaStream_t later) {
    switch (how) {
    case Wait::Nothing: break;
    case Wait::Event:
    case Wait::EventOnHost: {
        cudaEvent_t done = event();
        CHECK(cudaEventRecord(done, earlier));
        if (how == Wait::Event) CHECK(cudaStreamWaitEvent(later, done, 0));
        else CHECK(cudaEventSynchronize(done));
        CHECK(cudaEventDestroy(done));
        break;
    }
    case Wait::Stream: CHECK(cudaStreamSynchronize(earlier)); break;
    case Wait::Device: CHECK(cudaDeviceSynchronize()); break;
    }
}

// Unordered, the launches may overlap: then there is no telling what they add up to.
static int two_streams(Wait how) {
    int *memory = device<int>(N), *other = device<int>(N);
    fill<<<BLOCKS, THREADS>>>(other, 3);
    CHECK(cudaDeviceSynchronize());
    cudaStream_t first = stream(), second = stream();
    add<<<BLOCKS, THREADS, 0, first>>>(memory, other);
    order(how, first, second);
    add<<<BLOCKS, THREADS, 0, second>>>(memory, other);
    CHECK(cudaDeviceSynchronize());
    if (how == Wait::Nothing) printf("done\n");
    else print_sum("sum", memory, N);
    return 0;
}

// The default stream waits for the blocking ones, and they for it.
static int legacy_stream() {
    int *memory = device<int>(N), *other = device<int>(N);
    cudaStream_t first = stream(true), second = stream(true);
    fill<<<BLOCKS, THREADS, 0, first>>>(memory, 2);
    fill<<<BLOCKS, THREADS>>>(other, 5);
    add<<<BLOCKS, THREADS, 0, second>>>(memory, other);
    add<<<BLOCKS, THREADS>>>(other, memory);
    CHECK(cudaDeviceSynchronize());
    print_sum("sum", other, N);
    return 0;
}

// A copy to pinned memory reads what a kernel of another stream writes.
static int copy(Wait how) {
    int *memory = device<int>(N), *host;
    CHECK(cudaMallocHost(&host, N * sizeof(int)));
    fill<<<BLOCKS, THREADS>>>(memory, 4);
    CHECK(cudaDeviceSynchronize());
    cudaStream_t first = stream(), second = stream();
    fill<<<BLOCKS, THREADS, 0, first>>>(memory, 4);
    order(how, first, second);
    CHECK(cudaMemcpyAsync(host, memory, N * sizeof(int), cudaMemcpyDeviceToHost, second));
    CHECK(cudaDeviceSynchronize());
    long sum = 0;
    for (int i = 0; i < N; i++) sum += host[i];
    printf("copied: %ld\n", sum);
    CHECK(cudaFreeHost(host));
    return 0;
}

// A kernel writes pinned memory of the host.
static int pinned() {
    int *host, *seen;
    CHECK(cudaHostAlloc(&host, N * sizeof(int), cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&seen, host, 0));
    fill<<<BLOCKS, THREADS>>>(seen, 6);
    CHECK(cudaDeviceSynchronize());
    long sum = 0;
    for (int i = 0; i < N; i++) sum += host[i];
    printf("pinned: %ld\n", sum);
    return 0;
}

static int pinned_race() {
    int* host;
    CHECK(cudaHostAlloc(&host, N * sizeof(int), cudaHostAllocMapped));
    cudaStream_t first = stream(), second = stream();
    fill<<<BLOCKS, THREADS, 0, first>>>(host, 6);
    fill<<<BLOCKS, THREADS, 0, second>>>(host, 7);
    CHECK(cudaDeviceSynchronize());
    printf("pinned: %d\n", host[N - 1] == 6 || host[N - 1] == 7);
    return 0;
}

// Memory of one stream's order, used and freed in that stream, or freed in another.
static int stream_memory(bool elsewhere) {
    cudaStream_t first = stream(), second = stream();
    for (int round = 0; round < 3; round++) {
        int* memory;
        CHECK(cudaMallocAsync(&memory, N * sizeof(int), first));
        CHECK(cudaMemsetAsync(memory, 0, N * sizeof(int), first));
        fill<<<BLOCKS, THREADS, 0, first>>>(memory, round);
        int last;
        CHECK(cudaMemcpyAsync(&last, memory + N - 1, sizeof last, cudaMemcpyDeviceToHost, first));
        CHECK(cudaStreamSynchronize(first));
        printf("round: %d\n", last);
        if (elsewhere) fill<<<BLOCKS, THREADS, 0, first>>>(memory, round);
        CHECK(cudaFreeAsync(memory, elsewhere ? second : first));
        if (elsewhere) break;
    }
    CHECK(cudaDeviceSynchronize());
    return 0;
}

static void set(void* value) { *(int*)value += 1; }

// A function of the host is between two launches of one stream.
static int host_function() {
    int *memory = device<int>(N), calls = 0;
    CHECK(cudaDeviceSynchronize());
    cudaStream_t first = stream();
    fill<<<BLOCKS, THREADS, 0, first>>>(memory, 1);
    CHECK(cudaLaunchHostFunc(first, set, &calls));
    fill<<<BLOCKS, THREADS, 0, first>>>(memory, 2);
    CHECK(cudaStreamSynchronize(first));
    printf("calls: %d\n", calls);
    print_sum("sum", memory, N);
    return 0;
}

// Each thread has a stream and memory of its own.
static int threads() {
    std::vector<std::thread> all;
    std::vector<int> last(4);
    for (int number = 0; number < 4; number++)
        all.emplace_back([number, &last] {
            int* own = device<int>(N);
            cudaStream_t mine = stream();
            CHECK(cudaDeviceSynchronize());
            for (int i = 0; i < 20; i++) fill<<<BLOCKS, THREADS, 0, mine>>>(own, number + i);
            CHECK(cudaStreamSynchronize(mine));
            CHECK(cudaMemcpy(&last[number], own, sizeof(int), cudaMemcpyDeviceToHost));
        });
    for (std::thread& thread : all) thread.join();
    for (int value : last) printf("last: %d\n", value);
    return 0;
}

int main(int count, char** arguments) {
    const Scenario scenarios[] = {
        {"streams-race", [] { return two_streams(Wait::Nothing); }},
        {"streams-event", [] { return two_streams(Wait::Event); }},
        {"streams-host", [] { return two_streams(Wait::Stream); }},
        {"streams-device", [] { return two_streams(Wait::Device); }},
        {"streams-event-host", [] { return two_streams(Wait::EventOnHost); }},
        {"legacy-stream", legacy_stream},
        {"copy-race", [] { return copy(Wait::Nothing); }},
        {"copy-event", [] { return copy(Wait::Event); }},
        {"pinned", pinned},
        {"pinned-race", pinned_race},
        {"stream-memory", [] { return stream_memory(false); }},
        {"stream-memory-race", [] { return stream_memory(true); }},
        {"host-function", host_function},
        {"threads", threads},
    };
    return choose(scenarios, count, arguments);
}
