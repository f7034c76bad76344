// Graphs: captured and built node by node, changed, launched. Branches are ordered, or not; then there is no telling what they leave.

#include <cooperative_groups.h>

#include "common.cuh"

enum { N = 1024, THREADS = 256, BLOCKS = N / THREADS };

__global__ void fill(int* out, int value) { out[blockIdx.x * THREADS + threadIdx.x] = value; }

__global__ void add(int* out, const int* in) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    out[i] += in[i];
}

// Each block reads what another has written before a barrier of the whole grid.
__global__ void turn(int* data, int* out) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    data[i] = i;
    cooperative_groups::this_grid().sync();
    out[i] = data[N - 1 - i];
}

static cudaGraphExec_t ready(cudaGraph_t graph) {
    cudaGraphExec_t made;
    CHECK(cudaGraphInstantiate(&made, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return made;
}

static void launch(cudaGraphExec_t graph, cudaStream_t stream, int times) {
    for (int i = 0; i < times; i++) CHECK(cudaGraphLaunch(graph, stream));
    CHECK(cudaStreamSynchronize(stream));
}

static void print(bool known, const int* memory) {
    if (known) print_sum("sum", memory, N);
    else printf("done\n");
}

// Two streams that part and come together by events. They write the same memory in order, or beside
// each other.
static cudaGraph_t fork(int* memory, int* other, int value, bool ordered) {
    cudaStream_t first = stream(), second = stream();
    cudaEvent_t parts = event(), middle = event(), joins = event();
    CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaEventRecord(parts, first));
    CHECK(cudaStreamWaitEvent(second, parts, 0));
    fill<<<BLOCKS, THREADS, 0, first>>>(memory, value);
    if (ordered) {
        CHECK(cudaEventRecord(middle, first));
        CHECK(cudaStreamWaitEvent(second, middle, 0));
    }
    fill<<<BLOCKS, THREADS, 0, second>>>(memory, value + 1);
    CHECK(cudaEventRecord(joins, second));
    CHECK(cudaStreamWaitEvent(first, joins, 0));
    add<<<BLOCKS, THREADS, 0, first>>>(other, memory);
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(first, &graph));
    return graph;
}

static int captured(bool ordered) {
    int *memory = device<int>(N), *other = device<int>(N);
    CHECK(cudaDeviceSynchronize());
    launch(ready(fork(memory, other, 3, ordered)), stream(), 3);
    print(ordered, other);
    return 0;
}

static void count(void* calls) { ++*(int*)calls; }

// Copies both ways, a memset, a function of the host, and a kernel.
static int copies() {
    int *memory = device<int>(N), *other = device<int>(N), *from, *to, calls = 0;
    CHECK(cudaHostAlloc(&from, N * sizeof(int), 0));
    CHECK(cudaHostAlloc(&to, N * sizeof(int), 0));
    for (int i = 0; i < N; i++) from[i] = i;
    CHECK(cudaDeviceSynchronize());
    cudaStream_t first = stream();
    CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemcpyAsync(memory, from, N * sizeof(int), cudaMemcpyHostToDevice, first));
    CHECK(cudaMemsetAsync(other, 0, N * sizeof(int), first));
    add<<<BLOCKS, THREADS, 0, first>>>(other, memory);
    add<<<BLOCKS, THREADS, 0, first>>>(other, memory);
    CHECK(cudaLaunchHostFunc(first, count, &calls));
    CHECK(cudaMemcpyAsync(to, other, N * sizeof(int), cudaMemcpyDeviceToHost, first));
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(first, &graph));
    launch(ready(graph), first, 2);
    long sum = 0;
    for (int i = 0; i < N; i++) sum += to[i];
    printf("sum: %ld, calls: %d\n", sum, calls);
    return 0;
}

static cudaKernelNodeParams kernel(void* function, void** arguments) {
    cudaKernelNodeParams params = {};
    params.func = function;
    params.gridDim = BLOCKS;
    params.blockDim = THREADS;
    params.kernelParams = arguments;
    return params;
}

static cudaGraphNode_t fill_node(cudaGraph_t graph, int* to, int value, const cudaGraphNode_t* after) {
    void* arguments[] = {&to, &value};
    cudaKernelNodeParams params = kernel((void*)fill, arguments);
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, after, after ? 1 : 0, &params));
    return node;
}

// Every kind of node; the last two kernels write the same memory in order, or beside each other.
static int nodes(bool ordered) {
    int *memory = device<int>(N), *other = device<int>(N), calls = 0;
    CHECK(cudaDeviceSynchronize());
    cudaGraph_t graph, inner;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphCreate(&inner, 0));
    cudaGraphNode_t node, child;
    cudaMemsetParams zero = {};
    zero.dst = memory;
    zero.value = 7;
    zero.elementSize = 4;
    zero.width = N;
    zero.height = 1;
    CHECK(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &zero));
    CHECK(cudaGraphAddMemcpyNode1D(&node, graph, &node, 1, other, memory, N * sizeof(int), cudaMemcpyDeviceToDevice));
    cudaHostNodeParams host = {count, &calls};
    CHECK(cudaGraphAddHostNode(&node, graph, &node, 1, &host));
    void* arguments[] = {&other, &memory};
    cudaKernelNodeParams params = kernel((void*)add, arguments);
    CHECK(cudaGraphAddKernelNode(&node, graph, &node, 1, &params));
    CHECK(cudaGraphAddEmptyNode(&node, graph, &node, 1));
    fill_node(inner, memory, 1, nullptr);
    CHECK(cudaGraphAddChildGraphNode(&child, graph, &node, 1, inner));
    CHECK(cudaGraphDestroy(inner));
    fill_node(graph, memory, 2, ordered ? &child : &node);
    launch(ready(graph), stream(), 2);
    print_sum("sum", other, N);
    print(ordered, memory);
    printf("calls: %d\n", calls);
    return 0;
}

// A graph that is ready is changed: a node of it, and then all of it.
static int changed() {
    int *memory = device<int>(N), *other = device<int>(N), value = 5;
    CHECK(cudaDeviceSynchronize());
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t node = fill_node(graph, memory, 1, nullptr);
    cudaGraphExec_t made;
    CHECK(cudaGraphInstantiate(&made, graph, 0));
    void* arguments[] = {&other, &value};
    cudaKernelNodeParams params = kernel((void*)fill, arguments);
    CHECK(cudaGraphExecKernelNodeSetParams(made, node, &params));
    launch(made, stream(), 1);
    print_sum("zero", memory, N);
    print_sum("fives", other, N);
    made = ready(fork(memory, other, 3, true));
    cudaGraph_t again = fork(other, memory, 4, true);
    cudaGraphExecUpdateResultInfo result;
    CHECK(cudaGraphExecUpdate(made, again, &result));
    launch(made, stream(), 1);
    print_sum("sum", memory, N);
    print_sum("fours", other, N);
    return 0;
}

// A graph in one stream and a kernel in another.
static int beside(bool ordered) {
    int *memory = device<int>(N), *other = device<int>(N);
    CHECK(cudaDeviceSynchronize());
    cudaStream_t first = stream(), second = stream();
    CHECK(cudaGraphLaunch(ready(fork(memory, other, 3, true)), first));
    cudaEvent_t done = event();
    CHECK(cudaEventRecord(done, first));
    if (ordered) CHECK(cudaStreamWaitEvent(second, done, 0));
    fill<<<BLOCKS, THREADS, 0, second>>>(memory, 5);
    CHECK(cudaDeviceSynchronize());
    print(ordered, memory);
    return 0;
}

static int cooperative() {
    int *data = device<int>(N), *out = device<int>(N);
    CHECK(cudaDeviceSynchronize());
    cudaStream_t first = stream();
    CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    void* arguments[] = {&data, &out};
    CHECK(cudaLaunchCooperativeKernel((void*)turn, BLOCKS, THREADS, arguments, 0, first));
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(first, &graph));
    launch(ready(graph), first, 2);
    print_sum("sum", out, N);
    return 0;
}

// A graph that allocates is launched as it is.
static int memory() {
    int *out = device<int>(N), *own;
    CHECK(cudaDeviceSynchronize());
    cudaStream_t first = stream();
    CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    CHECK(cudaMallocAsync(&own, N * sizeof(int), first));
    fill<<<BLOCKS, THREADS, 0, first>>>(own, 2);
    add<<<BLOCKS, THREADS, 0, first>>>(out, own);
    CHECK(cudaFreeAsync(own, first));
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(first, &graph));
    launch(ready(graph), first, 3);
    fill<<<BLOCKS, THREADS, 0, first>>>(out, 6);
    CHECK(cudaStreamSynchronize(first));
    print_sum("sum", out, N);
    return 0;
}

int main(int argc, char** arguments) {
    const Scenario scenarios[] = {
        {"captured", [] { return captured(true); }},
        {"captured-race", [] { return captured(false); }},
        {"copies", copies},
        {"nodes", [] { return nodes(true); }},
        {"nodes-race", [] { return nodes(false); }},
        {"changed", changed},
        {"beside", [] { return beside(true); }},
        {"beside-race", [] { return beside(false); }},
        {"cooperative", cooperative},
        {"memory", memory},
    };
    return choose(scenarios, argc, arguments);
}
