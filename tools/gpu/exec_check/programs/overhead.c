// What a call of the driver costs, and a launch. Prints nanoseconds and milliseconds; it needs no header of CUDA's.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef uint64_t Device;
typedef void *Handle;

int cuInit(unsigned);
int cuDeviceGet(int *, int);
int cuCtxCreate_v2(Handle *, unsigned, int);
int cuCtxGetCurrent(Handle *);
int cuCtxSynchronize(void);
int cuDriverGetVersion(int *);
int cuMemAlloc_v2(Device *, size_t);
int cuModuleLoad(Handle *, const char *);
int cuModuleGetFunction(Handle *, Handle, const char *);
int cuLaunchKernel(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **);

enum { CALLS = 1000000, LAUNCHES = 1000 };

#define CHECK(call)                                                          \
    do {                                                                     \
        int code = (call);                                                   \
        if (code != 0) {                                                     \
            fprintf(stderr, "line %d: %s gave %d\n", __LINE__, #call, code); \
            exit(99);                                                        \
        }                                                                    \
    } while (0)

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int count, char **arguments) {
    int device, version;
    Handle context, current, module, fill;
    Device memory;
    unsigned value = 1;
    if (count < 2)
        return 98;
    double start = now();
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    printf("start-ms %.3f\n", (now() - start) * 1e3);

    start = now();
    for (int i = 0; i < CALLS; i++)
        CHECK(cuCtxGetCurrent(&current));
    printf("cuCtxGetCurrent-ns %.2f\n", (now() - start) / CALLS * 1e9);
    start = now();
    for (int i = 0; i < CALLS; i++)
        CHECK(cuDriverGetVersion(&version));
    printf("cuDriverGetVersion-ns %.2f\n", (now() - start) / CALLS * 1e9);

    start = now();
    CHECK(cuModuleLoad(&module, arguments[1]));
    CHECK(cuModuleGetFunction(&fill, module, "fill"));
    printf("load-ms %.3f\n", (now() - start) * 1e3);
    CHECK(cuMemAlloc_v2(&memory, 1024));
    void *parameters[] = {&memory, &value};
    CHECK(cuLaunchKernel(fill, 4, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
    CHECK(cuCtxSynchronize());
    start = now();
    for (int i = 0; i < LAUNCHES; i++)
        CHECK(cuLaunchKernel(fill, 4, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
    CHECK(cuCtxSynchronize());
    printf("launch-ms %.4f\n", (now() - start) / LAUNCHES * 1e3);
    start = now();
    for (int i = 0; i < LAUNCHES; i++) {
        CHECK(cuLaunchKernel(fill, 4, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
        CHECK(cuCtxSynchronize());
    }
    printf("launch-and-wait-ms %.4f\n", (now() - start) / LAUNCHES * 1e3);
    return 0;
}
