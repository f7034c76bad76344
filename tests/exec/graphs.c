// A program that uses the CUDA driver's graphs. The first argument says what it does, the second is the path of `kernels.ptx`.
// It needs no header of CUDA's.

#include "program.h"

typedef struct {
    Handle function;
    unsigned grid[3], block[3], shared;
    void **arguments, **extra;
    Handle kernel, context;
} Kernel;

typedef struct {
    size_t x, y, z, lod;
    unsigned kind;
    const void *host;
    Device device;
    Handle array;
    void *reserved;
    size_t pitch, height;
} End;

typedef struct {
    End from, to;
    size_t width, height, depth;
} Copy;

typedef struct {
    Device to;
    size_t pitch;
    unsigned value, size;
    size_t width, height;
} Fill;

typedef struct {
    void (*function)(void *);
    void *data;
} Host;

int cuCtxCreate_v2(Handle *, unsigned, int);
int cuCtxSynchronize(void);
int cuModuleLoad(Handle *, const char *);
int cuMemHostAlloc(void **, size_t, unsigned);
int cuMemAllocAsync(Device *, size_t, Handle);
int cuMemFreeAsync(Device, Handle);
int cuMemcpyDtoHAsync_v2(void *, Device, size_t, Handle);
int cuMemsetD32Async(Device, unsigned, size_t, Handle);
int cuStreamCreate(Handle *, unsigned);
int cuStreamSynchronize(Handle);
int cuStreamWaitEvent(Handle, Handle, unsigned);
int cuStreamBeginCapture_v2(Handle, unsigned);
int cuStreamEndCapture(Handle, Handle *);
int cuStreamIsCapturing(Handle, unsigned *);
int cuEventCreate(Handle *, unsigned);
int cuEventRecord(Handle, Handle);
int cuLaunchHostFunc(Handle, void (*)(void *), void *);
int cuGraphCreate(Handle *, unsigned);
int cuGraphDestroy(Handle);
int cuGraphAddKernelNode_v2(Handle *, Handle, const Handle *, size_t, const Kernel *);
int cuGraphAddMemcpyNode(Handle *, Handle, const Handle *, size_t, const Copy *, Handle);
int cuGraphAddMemsetNode(Handle *, Handle, const Handle *, size_t, const Fill *, Handle);
int cuGraphAddHostNode(Handle *, Handle, const Handle *, size_t, const Host *);
int cuGraphAddEmptyNode(Handle *, Handle, const Handle *, size_t);
int cuGraphAddEventRecordNode(Handle *, Handle, const Handle *, size_t, Handle);
int cuGraphAddEventWaitNode(Handle *, Handle, const Handle *, size_t, Handle);
int cuGraphAddChildGraphNode(Handle *, Handle, const Handle *, size_t, Handle);
int cuGraphAddDependencies(Handle, const Handle *, const Handle *, size_t);
int cuGraphClone(Handle *, Handle);
int cuGraphInstantiateWithFlags(Handle *, Handle, unsigned long long);
int cuGraphExecKernelNodeSetParams_v2(Handle, Handle, const Kernel *);
int cuGraphExecUpdate_v2(Handle, Handle, void *);
int cuGraphNodeSetEnabled(Handle, Handle, unsigned);
int cuGraphExecDestroy(Handle);
int cuGraphLaunch(Handle, Handle);

enum { N = 256, NON_BLOCKING = 1, UNJOINED = 904, ON_HOST = 1, ON_DEVICE = 2 };

static Handle fill, add;
static Device a, b, c;
static Handle first, second;
static unsigned *pinned;

static void start(const char *ptx) {
    int device;
    Handle context, module;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    CHECK(cuModuleLoad(&module, ptx));
    CHECK(cuModuleGetFunction(&fill, module, "fill"));
    CHECK(cuModuleGetFunction(&add, module, "add"));
    CHECK(cuMemAlloc_v2(&a, N * 4));
    CHECK(cuMemAlloc_v2(&b, N * 4));
    CHECK(cuMemAlloc_v2(&c, N * 4));
    CHECK(cuMemHostAlloc((void **)&pinned, N * 4, 0));
    CHECK(cuStreamCreate(&first, NON_BLOCKING));
    CHECK(cuStreamCreate(&second, NON_BLOCKING));
    /* Not all that is added to was filled before. */
    Device all[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        CHECK(cuMemsetD32Async(all[i], 0, N, 0));
    CHECK(cuCtxSynchronize());
}

static void expect(Device from, unsigned wanted) {
    unsigned got[N];
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH_v2(got, from, sizeof got));
    for (int i = 0; i < N; i++)
        if (got[i] != wanted) {
            fprintf(stderr, "element %d is %u, not %u\n", i, got[i], wanted);
            exit(98);
        }
}

static Handle graph_of(void) {
    Handle graph;
    CHECK(cuGraphCreate(&graph, 0));
    return graph;
}

static Kernel launch(Handle function, void **arguments) {
    return (Kernel){function, {N / 64, 1, 1}, {64, 1, 1}, 0, arguments, NULL, NULL, NULL};
}

// A node that comes after up to two others.
static Handle add_fill(Handle graph, Device out, unsigned value, Handle before) {
    Handle node;
    void *arguments[] = {&out, &value};
    Kernel kernel = launch(fill, arguments);
    CHECK(cuGraphAddKernelNode_v2(&node, graph, &before, before != NULL, &kernel));
    return node;
}

static Handle add_add(Handle graph, Device out, Device in, Handle one, Handle other) {
    Handle node, before[] = {one, other};
    void *arguments[] = {&out, &in};
    Kernel kernel = launch(add, arguments);
    CHECK(cuGraphAddKernelNode_v2(&node, graph, before, (one != NULL) + (other != NULL), &kernel));
    return node;
}

static Handle ready(Handle graph) {
    Handle made;
    CHECK(cuGraphInstantiateWithFlags(&made, graph, 0));
    return made;
}

static void run(Handle graph) {
    Handle made = ready(graph);
    CHECK(cuGraphLaunch(made, first));
    CHECK(cuGraphLaunch(made, first));
    CHECK(cuStreamSynchronize(first));
    CHECK(cuGraphExecDestroy(made));
    CHECK(cuGraphDestroy(graph));
}

static void run_fill(Device out, unsigned value, Handle stream) {
    void *arguments[] = {&out, &value};
    CHECK(cuLaunchKernel(fill, N / 64, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
}

static void run_add(Device out, Device in, Handle stream) {
    void *arguments[] = {&out, &in};
    CHECK(cuLaunchKernel(add, N / 64, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
}

static int called;

static void count(void *data) {
    called += *(int *)data;
}

// Every kind of node, one after the other.
static void chain(void) {
    Handle graph = graph_of(), node, event, empty;
    int one = 1;
    CHECK(cuEventCreate(&event, 0));
    for (int i = 0; i < N; i++)
        pinned[i] = 5;
    Copy copy = {{.kind = ON_HOST, .host = pinned}, {.kind = ON_DEVICE, .device = b}, N * 4, 1, 1};
    CHECK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL));
    Fill zero = {a, 0, 2, 4, N, 1};
    CHECK(cuGraphAddMemsetNode(&node, graph, &node, 1, &zero, NULL));
    node = add_add(graph, a, b, node, NULL);
    CHECK(cuGraphAddEventRecordNode(&node, graph, &node, 1, event));
    CHECK(cuGraphAddEventWaitNode(&node, graph, &node, 1, event));
    Host host = {count, &one};
    CHECK(cuGraphAddHostNode(&node, graph, &node, 1, &host));
    CHECK(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
    CHECK(cuGraphAddDependencies(graph, &node, &empty, 1));
    Copy back = {{.kind = ON_DEVICE, .device = a}, {.kind = ON_HOST, .host = pinned}, N * 4, 1, 1};
    CHECK(cuGraphAddMemcpyNode(&node, graph, &empty, 1, &back, NULL));
    Handle clone;
    CHECK(cuGraphClone(&clone, graph));
    CHECK(cuGraphDestroy(graph));
    run(clone);
    // The second launch has copied what the first one gave.
    expect(a, 9);
    if (pinned[7] != 9 || called != 2)
        exit(97);
}

// Two branches behind one node and before another. They write the same memory, or not.
static Handle diamond(Device left, Device right) {
    Handle graph = graph_of();
    Handle top = add_fill(graph, c, 1, NULL);
    Handle one = add_fill(graph, left, 1, top), other = add_fill(graph, right, 2, top);
    add_add(graph, left, c, one, other);
    return graph;
}

// A memset beside a kernel that reads what it sets.
static void memset_race(void) {
    Handle graph = graph_of(), node;
    Fill seven = {b, 0, 7, 4, N, 1};
    CHECK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &seven, NULL));
    add_add(graph, a, b, NULL, NULL);
    run(graph);
}

// What the streams are given goes into a graph; they part and come together by events. The second stream is waited for before its
// memory is used, or only afterwards.
static Handle captured(int late) {
    Handle fork, join, graph;
    unsigned capturing;
    CHECK(cuEventCreate(&fork, 0));
    CHECK(cuEventCreate(&join, 0));
    CHECK(cuStreamBeginCapture_v2(first, 1));
    CHECK(cuMemsetD32Async(c, 3, N, first));
    CHECK(cuEventRecord(fork, first));
    CHECK(cuStreamWaitEvent(second, fork, 0));
    run_fill(b, 4, second);
    CHECK(cuEventRecord(join, second));
    run_fill(a, 1, first);
    if (!late)
        CHECK(cuStreamWaitEvent(first, join, 0));
    run_add(a, b, first);
    if (late)
        CHECK(cuStreamWaitEvent(first, join, 0));
    run_add(a, c, first);
    static int one = 1;
    CHECK(cuLaunchHostFunc(first, count, &one));
    CHECK(cuMemcpyDtoHAsync_v2(pinned, a, N * 4, first));
    CHECK(cuStreamIsCapturing(second, &capturing));
    if (capturing != 1)
        exit(97);
    CHECK(cuStreamEndCapture(first, &graph));
    CHECK(cuStreamIsCapturing(second, &capturing));
    if (capturing != 0 || called != 0)
        exit(96);
    return graph;
}

static void unjoined(void) {
    Handle fork, graph;
    CHECK(cuEventCreate(&fork, 0));
    CHECK(cuStreamBeginCapture_v2(first, 1));
    CHECK(cuEventRecord(fork, first));
    CHECK(cuStreamWaitEvent(second, fork, 0));
    run_fill(a, 4, second);
    if (cuStreamEndCapture(first, &graph) != UNJOINED)
        exit(97);
    run_fill(a, 4, first);
}

// A graph in a graph, beside a node that writes the same memory, or behind it.
static void child(int behind) {
    Handle inner = graph_of(), outer = graph_of(), node, after;
    add_fill(inner, a, 1, NULL);
    node = add_fill(outer, a, 2, NULL);
    CHECK(cuGraphAddChildGraphNode(&after, outer, &node, behind, inner));
    add_add(outer, b, a, after, node);
    CHECK(cuGraphDestroy(inner));
    run(outer);
}

// A node writes other memory from now on.
static void set_params(Device before, Device after) {
    Handle graph = graph_of();
    add_fill(graph, a, 1, NULL);
    Handle node = add_fill(graph, before, 2, NULL), made = ready(graph);
    unsigned value = 6;
    void *arguments[] = {&after, &value};
    Kernel kernel = launch(fill, arguments);
    CHECK(cuGraphExecKernelNodeSetParams_v2(made, node, &kernel));
    CHECK(cuGraphDestroy(graph));
    CHECK(cuGraphLaunch(made, first));
    expect(after, 6);
}

static void update(void) {
    Handle made = ready(diamond(a, a));
    char result[24];
    CHECK(cuGraphExecUpdate_v2(made, diamond(a, b), result));
    CHECK(cuGraphLaunch(made, first));
    expect(b, 2);
    Handle other = graph_of();
    add_fill(other, a, 1, NULL);
    if (cuGraphExecUpdate_v2(made, other, result) != 910)
        exit(97);
    CHECK(cuGraphLaunch(made, first));
    CHECK(cuCtxSynchronize());
}

// Which node of a graph that was updated is meant, the driver alone knows.
static void updated_node(void) {
    Handle graph = graph_of(), node = add_fill(graph, a, 1, NULL), made = ready(graph);
    char result[24];
    CHECK(cuGraphExecUpdate_v2(made, graph, result));
    unsigned value = 6;
    void *arguments[] = {&b, &value};
    Kernel kernel = launch(fill, arguments);
    CHECK(cuGraphExecKernelNodeSetParams_v2(made, node, &kernel));
    CHECK(cuGraphLaunch(made, first));
    expect(b, 6);
    run_fill(b, 3, second);
    expect(b, 3);
}

static void disabled(void) {
    Handle graph = graph_of();
    add_fill(graph, a, 1, NULL);
    Handle node = add_fill(graph, a, 2, NULL), made = ready(graph);
    CHECK(cuGraphNodeSetEnabled(made, node, 0));
    CHECK(cuGraphLaunch(made, first));
    expect(a, 1);
}

// A graph in one stream, and a kernel in another; an event of the graph is waited for, or none.
static void beside(int waits) {
    Handle graph = graph_of(), event, node;
    CHECK(cuEventCreate(&event, 0));
    node = add_fill(graph, a, 1, NULL);
    CHECK(cuGraphAddEventRecordNode(&node, graph, &node, 1, event));
    CHECK(cuGraphLaunch(ready(graph), first));
    if (waits)
        CHECK(cuStreamWaitEvent(second, event, 0));
    run_fill(a, 2, second);
    CHECK(cuCtxSynchronize());
}

// Launches of one graph follow each other, whatever streams they are given to.
static void twice(void) {
    Handle made = ready(diamond(a, b));
    CHECK(cuGraphLaunch(made, first));
    CHECK(cuGraphLaunch(made, second));
    CHECK(cuCtxSynchronize());
}

// A graph with memory of its own. Gives whether the driver has such graphs.
static int memory(void) {
    Handle graph;
    Device own;
    CHECK(cuStreamBeginCapture_v2(first, 1));
    if (cuMemAllocAsync(&own, N * 4, first) != 0)
        return 0;
    run_fill(own, 4, first);
    CHECK(cuMemFreeAsync(own, first));
    CHECK(cuStreamEndCapture(first, &graph));
    run(graph);
    return 1;
}

int main(int count_of_arguments, char **arguments) {
    if (count_of_arguments < 3)
        return 95;
    const char *what = arguments[1];
    start(arguments[2]);
    if (strcmp(what, "chain") == 0)
        chain();
    else if (strcmp(what, "diamond") == 0)
        run(diamond(a, b));
    else if (strcmp(what, "diamond-race") == 0)
        run(diamond(a, a));
    else if (strcmp(what, "memset-race") == 0)
        memset_race();
    else if (strcmp(what, "captured") == 0) {
        run(captured(0));
        if (pinned[5] != 8 || called != 2)
            return 94;
    } else if (strcmp(what, "captured-race") == 0)
        run(captured(1));
    else if (strcmp(what, "unjoined") == 0)
        unjoined();
    else if (strcmp(what, "child") == 0)
        child(1);
    else if (strcmp(what, "child-race") == 0)
        child(0);
    else if (strcmp(what, "set") == 0)
        set_params(a, b);
    else if (strcmp(what, "set-race") == 0)
        set_params(b, a);
    else if (strcmp(what, "update") == 0)
        update();
    else if (strcmp(what, "updated-node") == 0)
        updated_node();
    else if (strcmp(what, "disabled") == 0)
        disabled();
    else if (strcmp(what, "beside") == 0)
        beside(1);
    else if (strcmp(what, "beside-race") == 0)
        beside(0);
    else if (strcmp(what, "twice") == 0)
        twice();
    else if (strcmp(what, "memory") == 0)
        return memory() ? 0 : 93;
    else
        return 92;
    return 0;
}
