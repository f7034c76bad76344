// A program that uses the CUDA driver's textures, surfaces and arrays. The first argument says what it does, the second is the
// path of `kernels.ptx`. It needs no header of CUDA's.

#include "program.h"

typedef struct {
    size_t width, height, depth;
    unsigned format, channels, flags;
} ArrayShape;

typedef struct {
    unsigned kind;
    union {
        Handle array;
        struct {
            Device at;
            unsigned format, channels;
            size_t bytes;
        } linear;
        int reserved[32];
    } of;
    unsigned flags;
} Resource;

typedef struct {
    unsigned edges[3], filter, flags, anisotropy, mipmap_filter;
    float mipmap[3], border[4];
    int reserved[12];
} Reading;

typedef struct {
    size_t x, y;
    unsigned kind;
    const void *host;
    Device device;
    Handle array;
    size_t pitch;
} End;

typedef struct {
    End from, to;
    size_t width, height;
} Copy;

int cuCtxCreate_v2(Handle *, unsigned, int);
int cuCtxSynchronize(void);
int cuModuleLoad(Handle *, const char *);
int cuMemcpy2D_v2(const Copy *);
int cuMemcpy2DAsync_v2(const Copy *, Handle);
int cuMemcpyAtoD_v2(Device, Handle, size_t, size_t);
int cuMemHostAlloc(void **, size_t, unsigned);
int cuStreamCreate(Handle *, unsigned);
int cuStreamSynchronize(Handle);
int cuArray3DCreate_v2(Handle *, const ArrayShape *);
int cuArray3DGetDescriptor_v2(ArrayShape *, Handle);
int cuArrayDestroy(Handle);
int cuTexObjectCreate(uint64_t *, const Resource *, const Reading *, const void *);
int cuTexObjectDestroy(uint64_t);
int cuTexObjectGetResourceDesc(Resource *, uint64_t);
int cuSurfObjectCreate(uint64_t *, const Resource *);
int cuSurfObjectDestroy(uint64_t);

enum { N = 64, ROWS = 4, U32 = 3, INTEGERS = 1, SURFACES = 2, ON_HOST = 1, ARRAY = 3, NON_BLOCKING = 1 };

static Handle module;

static void run(const char *kernel, unsigned blocks, Handle stream, void **arguments) {
    Handle function;
    CHECK(cuModuleGetFunction(&function, module, kernel));
    CHECK(cuLaunchKernel(function, blocks, 1, 1, N, 1, 1, 0, stream, arguments, NULL));
}

static Device memory(void) {
    Device made;
    CHECK(cuMemAlloc_v2(&made, ROWS * N * 4));
    return made;
}

static uint64_t texture(const Resource *resource) {
    Reading reading;
    uint64_t made;
    memset(&reading, 0, sizeof reading);
    reading.edges[0] = reading.edges[1] = reading.edges[2] = 1;
    reading.flags = INTEGERS;
    CHECK(cuTexObjectCreate(&made, resource, &reading, NULL));
    return made;
}

static uint64_t linear(Device at) {
    Resource resource;
    memset(&resource, 0, sizeof resource);
    resource.kind = 2;
    resource.of.linear.at = at;
    resource.of.linear.format = U32;
    resource.of.linear.channels = 1;
    resource.of.linear.bytes = N * 4;
    return texture(&resource);
}

static Handle array(void) {
    ArrayShape shape = {N, ROWS, 0, U32, 1, SURFACES}, same;
    Handle made;
    CHECK(cuArray3DCreate_v2(&made, &shape));
    CHECK(cuArray3DGetDescriptor_v2(&same, made));
    if (same.width != N || same.height != ROWS || same.format != U32)
        exit(91);
    return made;
}

static Resource of(Handle array) {
    Resource resource;
    memset(&resource, 0, sizeof resource);
    resource.of.array = array;
    return resource;
}

static Copy between(Handle array, void *host, int to_array) {
    Copy copy;
    memset(&copy, 0, sizeof copy);
    End *in_array = to_array ? &copy.to : &copy.from, *on_host = to_array ? &copy.from : &copy.to;
    in_array->kind = ARRAY;
    in_array->array = array;
    on_host->kind = ON_HOST;
    on_host->host = host;
    on_host->pitch = N * 4;
    copy.width = N * 4;
    copy.height = ROWS;
    return copy;
}

static void sum(const char *what, Device from, int count) {
    unsigned host[ROWS * N], all = 0;
    CHECK(cuMemcpyDtoH_v2(host, from, count * 4));
    for (int i = 0; i < count; i++)
        all += host[i];
    printf("%s: %u\n", what, all);
}

static void of_memory(int race) {
    Device data = memory(), out = memory();
    uint64_t seen = linear(data);
    unsigned five = 5;
    if (race) {
        run("store_and_fetch", 1, NULL, (void *[]){&data, &seen, &out});
        CHECK(cuCtxSynchronize());
        printf("done\n");
    } else {
        run("fill", 1, NULL, (void *[]){&data, &five});
        run("fetch", 1, NULL, (void *[]){&out, &seen});
        sum("fetched", out, N);
    }
    CHECK(cuTexObjectDestroy(seen));
}

// A surface is written, and read through a texture of the same array by the next launch.
static void of_array(void) {
    Handle pixels = array();
    Resource resource = of(pixels), same;
    uint64_t seen = texture(&resource), drawn;
    Device out = memory();
    unsigned host[ROWS * N], value = 7;
    CHECK(cuSurfObjectCreate(&drawn, &resource));
    CHECK(cuTexObjectGetResourceDesc(&same, seen));
    if (same.of.array != pixels)
        exit(92);
    for (int i = 0; i < ROWS * N; i++)
        host[i] = i;
    Copy copy = between(pixels, host, 1);
    CHECK(cuMemcpy2D_v2(&copy));
    run("look", ROWS, NULL, (void *[]){&out, &seen});
    sum("copied", out, ROWS * N);
    run("draw", ROWS, NULL, (void *[]){&drawn, &value});
    run("look", ROWS, NULL, (void *[]){&out, &seen});
    sum("drawn", out, ROWS * N);
    copy = between(pixels, host, 0);
    CHECK(cuMemcpy2D_v2(&copy));
    printf("pixel: %u\n", host[2 * N + 3]);
    CHECK(cuMemcpyAtoD_v2(out, pixels, 0, N * 4));
    sum("row", out, N);
    CHECK(cuSurfObjectDestroy(drawn));
    CHECK(cuTexObjectDestroy(seen));
    CHECK(cuArrayDestroy(pixels));
}

// A surface is written by a launch, and its array copied in another stream.
static void copied_meanwhile(int waits) {
    Handle pixels = array(), first, second;
    Resource resource = of(pixels);
    uint64_t drawn;
    unsigned *host, value = 7;
    CHECK(cuMemHostAlloc((void **)&host, ROWS * N * 4, 0));
    CHECK(cuSurfObjectCreate(&drawn, &resource));
    CHECK(cuStreamCreate(&first, NON_BLOCKING));
    CHECK(cuStreamCreate(&second, NON_BLOCKING));
    run("draw", ROWS, first, (void *[]){&drawn, &value});
    if (waits)
        CHECK(cuStreamSynchronize(first));
    Copy copy = between(pixels, host, 0);
    CHECK(cuMemcpy2DAsync_v2(&copy, second));
    CHECK(cuCtxSynchronize());
    printf("done\n");
}

// Two launches in unordered streams write one surface.
static void drawn_twice(void) {
    Handle pixels = array(), first, second;
    Resource resource = of(pixels);
    uint64_t drawn;
    unsigned value = 7;
    CHECK(cuSurfObjectCreate(&drawn, &resource));
    CHECK(cuStreamCreate(&first, NON_BLOCKING));
    CHECK(cuStreamCreate(&second, NON_BLOCKING));
    run("draw", 1, first, (void *[]){&drawn, &value});
    run("draw", 1, second, (void *[]){&drawn, &value});
    CHECK(cuCtxSynchronize());
    printf("done\n");
}

int main(int count, char **arguments) {
    int device;
    Handle context;
    if (count < 3)
        return 98;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    CHECK(cuModuleLoad(&module, arguments[2]));
    const char *what = arguments[1];
    if (strcmp(what, "linear") == 0)
        of_memory(0);
    else if (strcmp(what, "linear-race") == 0)
        of_memory(1);
    else if (strcmp(what, "array") == 0)
        of_array();
    else if (strcmp(what, "copy") == 0)
        copied_meanwhile(1);
    else if (strcmp(what, "copy-race") == 0)
        copied_meanwhile(0);
    else if (strcmp(what, "streams-race") == 0)
        drawn_twice();
    else
        return 97;
    return 0;
}
