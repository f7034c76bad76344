// A program that uses the CUDA driver. The first argument says what it does, the second is the path of `kernels.ptx`.
// It needs no header of CUDA's.

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

int cuCtxCreate_v2(Handle *, unsigned, int);
int cuCtxSetCurrent(Handle);
int cuCtxSynchronize(void);
int cuModuleLoad(Handle *, const char *);
int cuModuleGetGlobal_v2(Device *, size_t *, Handle, const char *);
int cuMemAllocManaged(Device *, size_t, unsigned);
int cuMemHostAlloc(void **, size_t, unsigned);
int cuMemFree_v2(Device);
int cuMemcpyHtoD_v2(Device, const void *, size_t);
int cuMemcpyDtoHAsync_v2(void *, Device, size_t, Handle);
int cuMemcpyHtoDAsync_v2(Device, const void *, size_t, Handle);
int cuMemsetD32Async(Device, unsigned, size_t, Handle);
int cuStreamCreate(Handle *, unsigned);
int cuStreamSynchronize(Handle);
int cuStreamWaitEvent(Handle, Handle, unsigned);
int cuEventCreate(Handle *, unsigned);
int cuEventRecord(Handle, Handle);
int cuEventSynchronize(Handle);
int cuStreamWriteValue32_v2(Handle, Device, unsigned, unsigned);
int cuStreamWaitValue32_v2(Handle, Device, unsigned, unsigned);
int cuStreamBatchMemOp_v2(Handle, unsigned, const void *, unsigned);
int cuMipmappedArrayCreate(Handle *, const void *, unsigned);

enum { N = 256, NON_BLOCKING = 1 };

static Handle context, module, fill, add, reverse, count, announce;
static Device a, b;
static Handle first, second;
static int pinned_bytes = N * 4;

static void run(Handle kernel, unsigned blocks, unsigned threads, Handle stream, void **arguments) {
    CHECK(cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, NULL));
}

static void run_fill(Device out, unsigned value, Handle stream) {
    void *arguments[] = {&out, &value};
    run(fill, N / 64, 64, stream, arguments);
}

static void run_add(Device out, Device in, Handle stream) {
    void *arguments[] = {&out, &in};
    run(add, N / 64, 64, stream, arguments);
}

static void run_reverse(void) {
    void *arguments[] = {&a};
    run(reverse, 1, 64, NULL, arguments);
}

static void start(const char *ptx) {
    int device;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    CHECK(cuModuleLoad(&module, ptx));
    CHECK(cuModuleGetFunction(&fill, module, "fill"));
    CHECK(cuModuleGetFunction(&add, module, "add"));
    CHECK(cuModuleGetFunction(&reverse, module, "reverse"));
    CHECK(cuModuleGetFunction(&count, module, "count"));
    CHECK(cuMemAlloc_v2(&a, N * 4));
    CHECK(cuMemAlloc_v2(&b, N * 4));
    CHECK(cuStreamCreate(&first, NON_BLOCKING));
    CHECK(cuStreamCreate(&second, NON_BLOCKING));
}

static void expect(const unsigned *got, unsigned wanted) {
    for (int i = 0; i < N; i++)
        if (got[i] != wanted) {
            fprintf(stderr, "element %d is %u, not %u\n", i, got[i], wanted);
            exit(98);
        }
}

// Both kernels write the same memory, in two streams; the second waits by what `order` says.
static void two_streams(const char *order) {
    run_fill(a, 1, first);
    if (strcmp(order, "event") == 0) {
        Handle event;
        CHECK(cuEventCreate(&event, 0));
        CHECK(cuEventRecord(event, first));
        CHECK(cuStreamWaitEvent(second, event, 0));
    } else if (strcmp(order, "host") == 0) {
        CHECK(cuStreamSynchronize(first));
    }
    run_fill(a, 2, second);
    CHECK(cuCtxSynchronize());
}

// Both kernels write the same memory, in two streams; the second waits for a value that the first stream writes.
static void value(const char *order) {
    enum { PUBLISHES, NO_BARRIER, EQUAL = 1 };
    Device flag;
    CHECK(cuMemAlloc_v2(&flag, 4));
    CHECK(cuMemsetD32Async(flag, strcmp(order, "value-unknown") == 0, 1, first));
    CHECK(cuStreamSynchronize(first));
    if (strcmp(order, "value-early") == 0)
        CHECK(cuStreamWriteValue32_v2(first, flag, 1, PUBLISHES));
    run_fill(a, 1, first);
    if (strcmp(order, "value") == 0)
        CHECK(cuStreamWriteValue32_v2(first, flag, 1, PUBLISHES));
    else if (strcmp(order, "value-unpublished") == 0)
        CHECK(cuStreamWriteValue32_v2(first, flag, 1, NO_BARRIER));
    if (strcmp(order, "value-batch") == 0) {
        enum { WAIT = 1, WRITE = 2 };
        struct {
            uint64_t operation;
            Device address;
            uint64_t value, flags, unused[2];
        } written[] = {{WRITE, flag, 2, PUBLISHES, {0}}, {WRITE, flag, 1, PUBLISHES, {0}}}, awaited = {WAIT, flag, 1, EQUAL, {0}};
        CHECK(cuStreamBatchMemOp_v2(first, 2, written, 0));
        CHECK(cuStreamBatchMemOp_v2(second, 1, &awaited, 0));
    } else {
        CHECK(cuStreamWaitValue32_v2(second, flag, 1, EQUAL));
    }
    run_fill(a, 2, second);
    CHECK(cuCtxSynchronize());
}

// A copy reads what a kernel of another stream writes; the copy waits, or not.
static void copy(int waits) {
    unsigned *host;
    CHECK(cuMemHostAlloc((void **)&host, pinned_bytes, 0));
    run_fill(a, 5, first);
    if (waits) {
        Handle event;
        CHECK(cuEventCreate(&event, 0));
        CHECK(cuEventRecord(event, first));
        CHECK(cuEventSynchronize(event));
    }
    CHECK(cuMemcpyDtoHAsync_v2(host, a, N * 4, second));
    CHECK(cuStreamSynchronize(second));
    if (waits)
        expect(host, 5);
}

// A copy and then a memset, in one stream, both unordered with the kernel of another that comes later.
static void before(void) {
    unsigned *host;
    CHECK(cuMemHostAlloc((void **)&host, pinned_bytes, 0));
    CHECK(cuMemcpyHtoDAsync_v2(a, host, N * 4, first));
    CHECK(cuMemsetD32Async(b, 7, N, first));
    run_add(a, b, second);
    CHECK(cuCtxSynchronize());
}

// A kernel writes a result and a flag to pinned memory, for a host that might look meanwhile.
static void to_host(const char *kernel) {
    unsigned *result, *flag;
    CHECK(cuMemHostAlloc((void **)&result, 4, 0));
    CHECK(cuMemHostAlloc((void **)&flag, 4, 0));
    CHECK(cuModuleGetFunction(&announce, module, kernel));
    void *arguments[] = {&result, &flag};
    run(announce, 1, 1, first, arguments);
    CHECK(cuStreamSynchronize(first));
    if (*result != 1 || *flag != 1)
        exit(91);
}

// Correct in every way, with results that are checked.
static void clean(void) {
    unsigned host[N];
    for (int i = 0; i < N; i++)
        host[i] = 3;
    CHECK(cuMemcpyHtoD_v2(b, host, sizeof host));
    run_fill(a, 4, NULL);
    run_add(a, b, NULL);
    CHECK(cuMemcpyDtoH_v2(host, a, sizeof host));
    expect(host, 7);

    Device both;
    CHECK(cuMemAllocManaged(&both, N * 4, 1));
    unsigned *seen = (unsigned *)(uintptr_t)both;
    for (int i = 0; i < N; i++)
        seen[i] = 10;
    run_add(both, a, NULL);
    CHECK(cuCtxSynchronize());
    expect(seen, 17);
    CHECK(cuMemFree_v2(both));

    run(count, 2, 64, NULL, NULL);
    run(count, 1, 64, NULL, NULL);
    Device total;
    size_t bytes;
    unsigned counted;
    CHECK(cuModuleGetGlobal_v2(&total, &bytes, module, "total"));
    CHECK(cuMemcpyDtoH_v2(&counted, total, sizeof counted));
    if (bytes != 4 || counted != 192)
        exit(97);
}

static void *worker(void *unused) {
    (void)unused;
    Handle stream;
    Device own;
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&stream, NON_BLOCKING));
    CHECK(cuMemAlloc_v2(&own, N * 4));
    for (int i = 0; i < 4; i++)
        run_fill(own, 1, stream);
    CHECK(cuStreamSynchronize(stream));
    return NULL;
}

static void threads(void) {
    pthread_t all[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, worker, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
}

int main(int count_of_arguments, char **arguments) {
    if (count_of_arguments < 3)
        return 96;
    const char *what = arguments[1], *ptx = arguments[2];
    if (strcmp(what, "none") == 0)
        return 0;
    if (strcmp(what, "parent") == 0) {
        pid_t child = fork();
        if (child == 0) {
            execl(arguments[0], arguments[0], "race", ptx, NULL);
            _exit(95);
        }
        int status;
        waitpid(child, &status, 0);
        start(ptx);
        clean();
        return WEXITSTATUS(status);
    }
    start(ptx);
    if (strcmp(what, "clean") == 0) {
        clean();
    } else if (strcmp(what, "status") == 0) {
        clean();
        return 7;
    } else if (strcmp(what, "race") == 0) {
        run_reverse();
    } else if (strcmp(what, "abort") == 0) {
        run_reverse();
        abort();
    } else if (strcmp(what, "kill") == 0) {
        run_reverse();
        kill(getpid(), SIGKILL);
    } else if (strcmp(what, "leave") == 0) {
        run_reverse();
        _exit(3);
    } else if (strcmp(what, "streams") == 0) {
        two_streams("nothing");
    } else if (strcmp(what, "event") == 0) {
        two_streams("event");
    } else if (strcmp(what, "host") == 0) {
        two_streams("host");
    } else if (strncmp(what, "value", 5) == 0) {
        value(what);
    } else if (strcmp(what, "copy") == 0) {
        copy(0);
    } else if (strcmp(what, "copy-waits") == 0) {
        copy(1);
    } else if (strcmp(what, "to-host") == 0) {
        to_host("announce");
    } else if (strcmp(what, "to-host-system") == 0) {
        to_host("announce_system");
    } else if (strcmp(what, "before") == 0) {
        before();
    } else if (strcmp(what, "missing") == 0) {
        Handle array;
        clean();
        if (cuMipmappedArrayCreate(&array, NULL, 1) != 801)
            return 94;
    } else if (strcmp(what, "fault") == 0) {
        run_fill(0x10000, 1, NULL);
        return cuCtxSynchronize() == 700 ? 0 : 93;
    } else if (strcmp(what, "threads") == 0) {
        threads();
    } else if (strcmp(what, "fork") == 0) {
        pid_t child = fork();
        if (child == 0)
            // What the parent has is of no use here.
            _exit(cuCtxSynchronize() == 3 ? 0 : 1);
        int status;
        waitpid(child, &status, 0);
        clean();
        return WEXITSTATUS(status);
    } else {
        return 92;
    }
    return 0;
}
