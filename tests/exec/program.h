// What the programs that use the CUDA driver share. It needs no header of CUDA's.

#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t Device;
typedef void *Handle;

int cuInit(unsigned);
int cuDeviceGet(int *, int);
int cuModuleGetFunction(Handle *, Handle, const char *);
int cuMemAlloc_v2(Device *, size_t);
int cuMemcpyDtoH_v2(void *, Device, size_t);
int cuLaunchKernel(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **);

#define CHECK(call)                                                       \
    do {                                                                  \
        int code = (call);                                                \
        if (code != 0) {                                                  \
            fprintf(stderr, "line %d: %s gave %d\n", __LINE__, #call, code); \
            exit(99);                                                     \
        }                                                                 \
    } while (0)
