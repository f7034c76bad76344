// A program that uses two devices. The first argument says how, the second is the path of `kernels.ptx`. It needs no header of
// CUDA's.

#include "program.h"

int cuDeviceGetCount(int *);
int cuDeviceCanAccessPeer(int *, int, int);
int cuDevicePrimaryCtxRetain(Handle *, int);
int cuCtxSetCurrent(Handle);
int cuCtxGetDevice(int *);
int cuCtxEnablePeerAccess(Handle, unsigned);
int cuCtxDisablePeerAccess(Handle);
int cuCtxSynchronize(void);
int cuModuleLoad(Handle *, const char *);
int cuMemAllocManaged(Device *, size_t, unsigned);
int cuMemcpyPeer(Device, Handle, Device, Handle, size_t);
int cuMemcpyPeerAsync(Device, Handle, Device, Handle, size_t, Handle);
int cuStreamCreate(Handle *, unsigned);
int cuStreamWaitEvent(Handle, Handle, unsigned);
int cuEventCreate(Handle *, unsigned);
int cuEventRecord(Handle, Handle);

enum { N = 256, NON_BLOCKING = 1, ALREADY_ENABLED = 704 };

struct Gpu {
    Handle context, fill, add, tally, tally_system, stream;
    Device memory;
};

static struct Gpu gpus[2];

static void start(struct Gpu *gpu, int number, const char *ptx) {
    int device;
    Handle module;
    CHECK(cuDeviceGet(&device, number));
    CHECK(cuDevicePrimaryCtxRetain(&gpu->context, device));
    CHECK(cuCtxSetCurrent(gpu->context));
    CHECK(cuModuleLoad(&module, ptx));
    CHECK(cuModuleGetFunction(&gpu->fill, module, "fill"));
    CHECK(cuModuleGetFunction(&gpu->add, module, "add"));
    CHECK(cuModuleGetFunction(&gpu->tally, module, "tally"));
    CHECK(cuModuleGetFunction(&gpu->tally_system, module, "tally_system"));
    CHECK(cuMemAlloc_v2(&gpu->memory, N * 4));
    CHECK(cuStreamCreate(&gpu->stream, NON_BLOCKING));
}

static void let(struct Gpu *gpu, struct Gpu *peer) {
    CHECK(cuCtxSetCurrent(gpu->context));
    CHECK(cuCtxEnablePeerAccess(peer->context, 0));
    if (cuCtxEnablePeerAccess(peer->context, 0) != ALREADY_ENABLED)
        exit(98);
}

static void run(struct Gpu *gpu, Handle kernel, Handle stream, void **arguments) {
    CHECK(cuCtxSetCurrent(gpu->context));
    CHECK(cuLaunchKernel(kernel, N / 64, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
}

static void run_fill(struct Gpu *gpu, Device out, unsigned value, Handle stream) {
    void *arguments[] = {&out, &value};
    run(gpu, gpu->fill, stream, arguments);
}

static void run_add(struct Gpu *gpu, Device out, Device in, Handle stream) {
    void *arguments[] = {&out, &in};
    run(gpu, gpu->add, stream, arguments);
}

static void synchronize(struct Gpu *gpu) {
    CHECK(cuCtxSetCurrent(gpu->context));
    CHECK(cuCtxSynchronize());
}

// Both write the memory of the first, in default streams of their own; `order` says what lies between.
static void both(const char *order) {
    run_fill(&gpus[0], gpus[0].memory, 1, NULL);
    if (strcmp(order, "waits") == 0)
        synchronize(&gpus[0]);
    else if (strcmp(order, "waits-elsewhere") == 0)
        synchronize(&gpus[1]);
    run_fill(&gpus[1], gpus[0].memory, 2, NULL);
}

// Both write the memory of the first, in streams; an event lies between.
static void event(void) {
    Handle event;
    CHECK(cuCtxSetCurrent(gpus[0].context));
    CHECK(cuEventCreate(&event, 0));
    run_fill(&gpus[0], gpus[0].memory, 1, gpus[0].stream);
    CHECK(cuEventRecord(event, gpus[0].stream));
    CHECK(cuCtxSetCurrent(gpus[1].context));
    CHECK(cuStreamWaitEvent(gpus[1].stream, event, 0));
    run_fill(&gpus[1], gpus[0].memory, 2, gpus[1].stream);
}

// Both add to one number, atomically for the device or for all.
static void tally(int system) {
    Device sum;
    CHECK(cuMemAllocManaged(&sum, 4, 1));
    *(unsigned *)(uintptr_t)sum = 0;
    for (int i = 0; i < 2; i++) {
        void *arguments[] = {&sum};
        run(&gpus[i], system ? gpus[i].tally_system : gpus[i].tally, gpus[i].stream, arguments);
    }
    synchronize(&gpus[0]);
    synchronize(&gpus[1]);
    if (system && *(unsigned *)(uintptr_t)sum != 2 * N)
        exit(97);
}

// What the first has written is copied to the second, which goes on with it. In default streams such a copy waits for those of both
// devices, of other streams, too (`before`), and both wait for it; in another stream (`apart`) it does not.
static void copy(int apart, int before) {
    struct Gpu *from = &gpus[0], *to = &gpus[1];
    unsigned host[N];
    run_fill(from, from->memory, 3, before ? from->stream : NULL);
    CHECK(cuCtxSetCurrent(to->context));
    if (apart)
        CHECK(cuMemcpyPeerAsync(to->memory, to->context, from->memory, from->context, N * 4, to->stream));
    else
        CHECK(cuMemcpyPeer(to->memory, to->context, from->memory, from->context, N * 4));
    run_add(to, to->memory, to->memory, apart ? to->stream : NULL);
    synchronize(to);
    CHECK(cuMemcpyDtoH_v2(host, to->memory, sizeof host));
    if (!apart && (host[0] != 6 || host[N - 1] != 6))
        exit(96);
}

int main(int count, char **arguments) {
    int devices, can, device;
    if (count < 3)
        return 95;
    const char *what = arguments[1], *ptx = arguments[2];
    CHECK(cuInit(0));
    CHECK(cuDeviceGetCount(&devices));
    if (strcmp(what, "three") == 0) {
        start(&gpus[0], 2, ptx);
        run_fill(&gpus[0], gpus[0].memory, 1, NULL);
        return devices == 3 ? 0 : 94;
    }
    CHECK(cuDeviceCanAccessPeer(&can, 0, 1));
    if (devices < 2 || !can)
        return 93;
    start(&gpus[0], 0, ptx);
    start(&gpus[1], 1, ptx);
    CHECK(cuCtxGetDevice(&device));
    if (device != 1)
        return 92;
    let(&gpus[0], &gpus[1]);
    let(&gpus[1], &gpus[0]);
    if (strcmp(what, "event") == 0)
        event();
    else if (strcmp(what, "tally") == 0)
        tally(0);
    else if (strcmp(what, "tally-system") == 0)
        tally(1);
    else if (strcmp(what, "copy") == 0)
        copy(0, 0);
    else if (strcmp(what, "copy-apart") == 0)
        copy(1, 0);
    else if (strcmp(what, "copy-before") == 0)
        copy(0, 1);
    else if (strcmp(what, "own") == 0)
        for (int i = 0; i < 2; i++)
            run_fill(&gpus[i], gpus[i].memory, 1, NULL);
    else
        both(what);
    synchronize(&gpus[0]);
    synchronize(&gpus[1]);
    CHECK(cuCtxDisablePeerAccess(gpus[0].context));
    return 0;
}
