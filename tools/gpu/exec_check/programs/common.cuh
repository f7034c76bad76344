// What the programs share. Their first argument says what they do; what they print does not depend on races.

#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                                                          \
    do {                                                                                     \
        cudaError_t code = (call);                                                           \
        if (code != cudaSuccess) {                                                           \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(code)); \
            exit(99);                                                                        \
        }                                                                                    \
    } while (0)

struct Scenario {
    const char* name;
    int (*run)();
};

// The exit code of the scenario that the command line names.
template <int N>
int choose(const Scenario (&scenarios)[N], int count, char** arguments) {
    for (const Scenario& scenario : scenarios)
        if (count > 1 && strcmp(arguments[1], scenario.name) == 0) {
            int code = scenario.run();
            fflush(stdout);
            return code;
        }
    fprintf(stderr, "no such scenario\n");
    return 98;
}

template <class T>
T* device(int count) {
    T* memory;
    CHECK(cudaMalloc(&memory, count * sizeof(T)));
    CHECK(cudaMemset(memory, 0, count * sizeof(T)));
    return memory;
}

// Copies numbers back and prints their sum.
inline void print_sum(const char* what, const int* memory, int count) {
    int* host = (int*)malloc(count * sizeof(int));
    CHECK(cudaMemcpy(host, memory, count * sizeof(int), cudaMemcpyDeviceToHost));
    long sum = 0;
    for (int i = 0; i < count; i++) sum += host[i];
    printf("%s: %ld\n", what, sum);
    free(host);
}

inline cudaStream_t stream(bool blocking = false) {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, blocking ? cudaStreamDefault : cudaStreamNonBlocking));
    return stream;
}

inline cudaEvent_t event() {
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}
