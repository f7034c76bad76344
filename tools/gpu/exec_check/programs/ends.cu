// Ways to end. Before that, one kernel with a race has run, and one may be running.

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include "common.cuh"

enum { THREADS = 64 };

__global__ void reverse(int* out, int* sink) {
    __shared__ int tile[THREADS];
    int t = threadIdx.x;
    tile[t] = t;
    sink[t] = tile[THREADS - 1 - t];
    out[t] = 1;
}

__global__ void beyond(int* out) { out[(1ull << 40) + threadIdx.x] = 1; }

static int *out, *sink;

static void race() {
    out = device<int>(THREADS);
    sink = device<int>(THREADS);
    reverse<<<1, THREADS>>>(out, sink);
    print_sum("ones", out, THREADS);
    fflush(stdout);
}

static int status() {
    race();
    return 7;
}

static int aborted() {
    race();
    reverse<<<1, THREADS>>>(out, sink);
    abort();
}

static int killed() {
    race();
    reverse<<<1, THREADS>>>(out, sink);
    kill(getpid(), SIGKILL);
    return 0;
}

static int left() {
    race();
    reverse<<<1, THREADS>>>(out, sink);
    _exit(3);
}

static int reset() {
    race();
    CHECK(cudaDeviceReset());
    race();
    return 0;
}

// Nothing works after a fault, and the program sees the same error as without us.
static int fault() {
    int* memory = device<int>(1);
    beyond<<<1, THREADS>>>(memory);
    cudaError_t first = cudaDeviceSynchronize(), second = cudaMemset(memory, 0, 4);
    printf("%s, %s\n", cudaGetErrorName(first), cudaGetErrorName(second));
    return 5;
}

// The child uses the GPU, the parent only waits for it.
static int child(bool execute, char** arguments) {
    pid_t pid = fork();
    if (pid == 0) {
        if (execute) execl(arguments[0], arguments[0], "status", nullptr);
        race();
        _exit(7);
    }
    int status;
    waitpid(pid, &status, 0);
    printf("child: %d\n", WEXITSTATUS(status));
    return 0;
}

static char** own_arguments;

int main(int count, char** arguments) {
    own_arguments = arguments;
    const Scenario scenarios[] = {
        {"nothing", [] { return 4; }},
        {"status", status},
        {"abort", aborted},
        {"kill", killed},
        {"leave", left},
        {"reset", reset},
        {"fault", fault},
        {"child-exec", [] { return child(true, own_arguments); }},
        {"child-fork", [] { return child(false, own_arguments); }},
    };
    return choose(scenarios, count, arguments);
}
