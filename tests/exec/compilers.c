// A program that compiles or links a kernel when it runs, takes the machine code, and runs it. It needs no header of CUDA's. The
// arguments: `nvrtc`, `nvjitlink`, `nvjitlink-lto`, which optimises when it links, or `nvjitlink-other`, which links something that
// is no PTX; the path of `kernels.ptx`; the path of the compiler's library, unless the program is linked to it (`-DLINKED`).

#include <dlfcn.h>

#include "program.h"

int cuCtxCreate_v2(Handle *, unsigned, int);
int cuCtxSynchronize(void);
int cuModuleLoadData(Handle *, const void *);

#ifdef LINKED
int nvrtcCreateProgram(Handle *, const char *, const char *, int, const char *const *, const char *const *);
int nvrtcCompileProgram(Handle, int, const char *const *);
int nvrtcGetCUBINSize(Handle, size_t *);
int nvrtcGetCUBIN(Handle, char *);
int __nvJitLinkCreate_13_0(Handle *, unsigned, const char **);
int __nvJitLinkAddData_13_0(Handle, int, const void *, size_t, const char *);
int __nvJitLinkComplete_13_0(Handle);
int __nvJitLinkGetLinkedCubinSize_13_0(Handle, size_t *);
int __nvJitLinkGetLinkedCubin_13_0(Handle, void *);
int __nvJitLinkDestroy_13_0(Handle *);
#define FIND(name) name
static void open_library(const char *path) { (void)path; }
#else
static void *library;
#define FIND(name) find(#name)
static void *find(const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(97);
    }
    return found;
}
static void open_library(const char *path) {
    library = dlopen(path, RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(98);
    }
}
#endif

static const char SOURCE[] =
    "extern \"C\" __global__ void reverse(unsigned *out) {\n"
    "    __shared__ unsigned tile[64];\n"
    "    tile[threadIdx.x] = threadIdx.x;\n"
    "    out[threadIdx.x] = tile[63 - threadIdx.x];\n"
    "}\n";

static char *compile(void) {
    int (*create)(Handle *, const char *, const char *, int, const char *const *, const char *const *) =
        FIND(nvrtcCreateProgram);
    int (*compile)(Handle, int, const char *const *) = FIND(nvrtcCompileProgram);
    int (*size)(Handle, size_t *) = FIND(nvrtcGetCUBINSize);
    int (*get)(Handle, char *) = FIND(nvrtcGetCUBIN);
    const char *options[] = {"-arch=sm_90", "-lineinfo"};
    Handle program;
    size_t bytes;
    CHECK(create(&program, SOURCE, "reverse.cu", 0, NULL, NULL));
    CHECK(compile(program, 2, options));
    CHECK(size(program, &bytes));
    char *cubin = malloc(bytes);
    CHECK(get(program, cubin));
    return cubin;
}

static char *link_parts(const char *ptx, int lto, int other) {
    enum { PTX = 2, LTO_IR, OBJECT = 5 };
    int (*create)(Handle *, unsigned, const char **) = FIND(__nvJitLinkCreate_13_0);
    int (*add)(Handle, int, const void *, size_t, const char *) = FIND(__nvJitLinkAddData_13_0);
    int (*complete)(Handle) = FIND(__nvJitLinkComplete_13_0);
    int (*size)(Handle, size_t *) = FIND(__nvJitLinkGetLinkedCubinSize_13_0);
    int (*get)(Handle, void *) = FIND(__nvJitLinkGetLinkedCubin_13_0);
    int (*destroy)(Handle *) = FIND(__nvJitLinkDestroy_13_0);
    static char text[1 << 20];
    FILE *file = fopen(ptx, "r");
    size_t length = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    const char *options[] = {"-arch=sm_90", "-lto"};
    Handle link;
    size_t bytes;
    CHECK(create(&link, lto ? 2 : 1, options));
    CHECK(add(link, lto ? LTO_IR : PTX, text, length + 1, ptx));
    if (other)
        CHECK(add(link, OBJECT, text, length + 1, "other"));
    CHECK(complete(link));
    CHECK(size(link, &bytes));
    char *cubin = malloc(bytes);
    CHECK(get(link, cubin));
    CHECK(destroy(&link));
    return cubin;
}

static int is(const char *what, const char *end) { return strstr(what, end) != NULL; }

int main(int count, char **arguments) {
    int device;
    Handle context, module, reverse;
    Device out;
    if (count < 3)
        return 95;
    const char *what = arguments[1];
    open_library(count > 3 ? arguments[3] : NULL);
    char *cubin = strcmp(what, "nvrtc") == 0 ? compile() : link_parts(arguments[2], is(what, "-lto"), is(what, "-other"));
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    CHECK(cuModuleLoadData(&module, cubin));
    CHECK(cuModuleGetFunction(&reverse, module, "reverse"));
    CHECK(cuMemAlloc_v2(&out, 256));
    void *parameters[] = {&out};
    CHECK(cuLaunchKernel(reverse, 1, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
    CHECK(cuCtxSynchronize());
    return 0;
}
