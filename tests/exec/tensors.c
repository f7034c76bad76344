// A program that copies by tensor maps. The first argument says what it does. It needs no header of CUDA's.

#include "program.h"

typedef struct {
    _Alignas(128) uint64_t opaque[16];
} Map;

int cuCtxCreate_v2(Handle *, unsigned, int);
int cuModuleLoadData(Handle *, const void *);
int cuMemcpyHtoD_v2(Device, const void *, size_t);
int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
int cuTensorMapReplaceAddress(Map *, Device);
typedef int Encode(Map *, int, unsigned, Device, const uint64_t *, const uint64_t *, const unsigned *, const unsigned *, int, int, int, int);
Encode cuTensorMapEncodeTiled;

// A block loads a box of 32 by 4 words, swizzled, and writes it to `out` column by column. Where `waits` is 0, only the thread
// that loads waits. The map is a parameter, or the generic address is that of one in global memory.
static const char PTX[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry load(.param .align 64 .b8 map[128], .param .u64 other, .param .u64 out, .param .u32 waits)\n{\n"
    "\t.shared .align 1024 .b8 tile[512];\n\t.shared .align 8 .b64 bar;\n"
    "\t.reg .pred %p<5>;\n\t.reg .b32 %r<20>;\n\t.reg .b64 %rd<10>;\n"
    "\tmov.b64 %rd1, map;\n\tcvta.param.u64 %rd1, %rd1;\n\tld.param.u64 %rd2, [other];\n"
    "\tsetp.ne.u64 %p1, %rd2, 0;\n\tselp.b64 %rd1, %rd2, %rd1, %p1;\n"
    "\tld.param.u64 %rd3, [out];\n\tld.param.u32 %r1, [waits];\n\tmov.u32 %r2, %tid.x;\n"
    "\tmov.u32 %r3, tile;\n\tmov.u32 %r4, bar;\n\tsetp.ne.u32 %p1, %r2, 0;\n"
    "\t@%p1 bra ready;\n\tmbarrier.init.shared.b64 [%r4], 1;\nready:\n\tbar.sync 0;\n"
    "\t@%p1 bra issued;\n\tmbarrier.arrive.expect_tx.shared.b64 _, [%r4], 512;\n"
    "\tcp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1, {32, 6}], [%r4];\nissued:\n"
    "\tsetp.eq.u32 %p2, %r1, 0;\n\tand.pred %p2, %p2, %p1;\n\t@%p2 bra come;\nwait:\n"
    "\tmbarrier.try_wait.parity.shared.b64 %p3, [%r4], 0;\n\t@!%p3 bra wait;\ncome:\n"
    "\tmov.u32 %r5, 0;\nnext:\n\tshr.u32 %r6, %r2, 2;\n\txor.b32 %r6, %r6, %r5;\n\tand.b32 %r7, %r2, 3;\n"
    "\tmad.lo.u32 %r6, %r6, 4, %r7;\n\tmad.lo.u32 %r6, %r5, 32, %r6;\n\tmad.lo.u32 %r6, %r6, 4, %r3;\n"
    "\tld.shared.u32 %r8, [%r6];\n\tmad.lo.u32 %r9, %r2, 4, %r5;\n\tmad.wide.u32 %rd4, %r9, 4, %rd3;\n"
    "\tst.global.u32 [%rd4], %r8;\n\tadd.u32 %r5, %r5, 1;\n\tsetp.lt.u32 %p4, %r5, 4;\n\t@%p4 bra next;\n\tret;\n}\n";

enum { WIDTH = 64, HEIGHT = 8, N = WIDTH * HEIGHT };

static Handle load;
static Device in, out;

static int encode(Encode *by, Map *map, int interleave) {
    uint64_t sizes[] = {WIDTH, HEIGHT}, strides[] = {WIDTH * 4};
    unsigned box[] = {32, 4}, steps[] = {1, 1};
    return by(map, 2, 2, in, sizes, strides, box, steps, interleave, 3, 0, 0);
}

static void run(const Map *map, Device other, unsigned waits) {
    void *arguments[] = {(void *)map, &other, &out, &waits};
    CHECK(cuLaunchKernel(load, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
}

// The box begins in row 6, so that its last two rows are outside.
static void check(unsigned first) {
    unsigned got[128];
    CHECK(cuMemcpyDtoH_v2(got, out, sizeof got));
    for (unsigned x = 0; x < 32; x++)
        for (unsigned y = 0; y < 4; y++)
            if (got[x * 4 + y] != (y < 2 ? first + (6 + y) * WIDTH + 32 + x : 0)) {
                fprintf(stderr, "%u at %u, %u\n", got[x * 4 + y], x, y);
                exit(98);
            }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int device;
    Handle context, module;
    Device second;
    unsigned numbers[N];
    Map map;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    CHECK(cuModuleLoadData(&module, PTX));
    CHECK(cuModuleGetFunction(&load, module, "load"));
    CHECK(cuMemAlloc_v2(&in, sizeof numbers));
    CHECK(cuMemAlloc_v2(&second, sizeof numbers));
    CHECK(cuMemAlloc_v2(&out, 512));
    for (unsigned at = 0; at < N; at++)
        numbers[at] = at;
    CHECK(cuMemcpyHtoD_v2(in, numbers, sizeof numbers));
    for (unsigned at = 0; at < N; at++)
        numbers[at] += 1000;
    CHECK(cuMemcpyHtoD_v2(second, numbers, sizeof numbers));
    CHECK(encode(cuTensorMapEncodeTiled, &map, 0));
    if (strcmp(what, "clean") == 0) {
        run(&map, 0, 1);
        check(0);
    } else if (strcmp(what, "race") == 0) {
        run(&map, 0, 0);
    } else if (strcmp(what, "replaced") == 0) {
        // Of another tensor, and by a function that is asked for.
        void *found = NULL;
        int status = 0;
        CHECK(cuGetProcAddress_v2("cuTensorMapEncodeTiled", &found, 12000, 0, &status));
        CHECK(encode((Encode *)found, &map, 0));
        run(&map, 0, 1);
        check(0);
        CHECK(cuTensorMapReplaceAddress(&map, second));
        run(&map, 0, 1);
        check(1000);
    } else if (strcmp(what, "in-memory") == 0) {
        Device place;
        CHECK(cuMemAlloc_v2(&place, sizeof map));
        CHECK(cuMemcpyHtoD_v2(place, &map, sizeof map));
        memset(&map, 0, sizeof map);
        run(&map, place, 1);
        check(0);
    } else if (strcmp(what, "forged") == 0) {
        // As the device can change a map: the emulator has the address here.
        map.opaque[1] = second;
        run(&map, 0, 1);
        check(1000);
    } else {
        return 92;
    }
    return 0;
}
