// What a GPU does with tensor maps: one box by one thread, then all of shared and global memory is told. Compiled by `run`,
// started once for each line of `cases.txt`, so that a fault concerns one case only.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

constexpr unsigned SHARED = 16384, GLOBAL = 65536;

static uint8_t pattern(uint32_t at, uint32_t seed)
{
    uint32_t x = (at ^ seed) * 0x9E3779B1u;
    x ^= x >> 15;
    x *= 0x85EBCA77u;
    return uint8_t(x >> 24);
}

struct Result { unsigned done; unsigned pad; unsigned long long barrier; };

#define COORDS_1 "{%2}"
#define COORDS_2 "{%2, %3}"
#define COORDS_3 "{%2, %3, %4}"
#define COORDS_4 "{%2, %3, %4, %5}"
#define COORDS_5 "{%2, %3, %4, %5, %6}"
#define ARGS(x) "r"(x), "l"(map), "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]), "r"(c.v[3]), "r"(c.v[4])
#define LOAD(n) case n: asm volatile("cp.async.bulk.tensor." #n "d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, " COORDS_##n "], [%7];" \
    :: ARGS(to), "r"(bar) : "memory"); break;
#define STORE(n) case n: asm volatile("cp.async.bulk.tensor." #n "d.global.shared::cta.bulk_group [%1, " COORDS_##n "], [%0];" \
    :: ARGS(to) : "memory"); break;
#define REDUCE1(n, op) case n: asm volatile("cp.reduce.async.bulk.tensor." #n "d.global.shared::cta." op ".bulk_group [%1, " COORDS_##n "], [%0];" \
    :: ARGS(to) : "memory"); break;
#define REDUCE(number, op) case number: switch (rank) { REDUCE1(1, op) REDUCE1(2, op) REDUCE1(3, op) REDUCE1(4, op) REDUCE1(5, op) } break;

struct Coords { int v[5]; };

__global__ void probe(const __grid_constant__ CUtensorMap param, Coords c, int rank, int what, int offset, unsigned bytes,
                      unsigned char* shared_out, Result* result)
{
    extern __shared__ __align__(1024) unsigned char tile[];
    __shared__ alignas(8) unsigned long long barrier;
    for (unsigned i = 0; i < SHARED; i++) {
        unsigned x = (i ^ 77u) * 0x9E3779B1u;
        x ^= x >> 15;
        x *= 0x85EBCA77u;
        tile[i] = what == 0 ? 0xEE : (unsigned char)(x >> 24);
    }
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
    unsigned to = (unsigned)__cvta_generic_to_shared(tile) + offset;
    const void* map = &param;
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
    result->done = 0;
    if (what == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
        switch (rank) { LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) }
        unsigned done = 0;
        for (int i = 0; i < 200000 && !done; i++)
            asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                : "=r"(done) : "r"(bar) : "memory");
        result->done = done;
    } else {
        switch (what) {
        case 1: switch (rank) { STORE(1) STORE(2) STORE(3) STORE(4) STORE(5) } break;
        REDUCE(2, "add") REDUCE(3, "min") REDUCE(4, "max") REDUCE(5, "inc") REDUCE(6, "dec") REDUCE(7, "and") REDUCE(8, "or") REDUCE(9, "xor")
        }
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        result->done = 1;
    }
    result->barrier = *(volatile unsigned long long*)&barrier;
    for (unsigned i = 0; i < SHARED; i++) shared_out[i] = tile[i];
}

static std::vector<long long> numbers(const std::string& text)
{
    std::vector<long long> all;
    for (const char* at = text.c_str(); *at;) {
        char* end;
        all.push_back(strtoll(at, &end, 0));
        at = *end == ',' ? end + 1 : end;
        if (end == at && *end) break;
    }
    return all;
}

static uint64_t fnv(const std::vector<uint8_t>& bytes)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
    return hash;
}

static void dump(FILE* to, const char* what, const std::vector<uint8_t>& bytes)
{
    fprintf(to, "%s\n", what);
    for (size_t i = 0; i < bytes.size(); i += 64) {
        fprintf(to, "%05zx ", i);
        for (size_t j = i; j < i + 64; j++) fprintf(to, "%02x", bytes[j]);
        fprintf(to, "\n");
    }
}

// what type sizes strides box elementstrides swizzle interleave fill coords offset
int main(int argc, char** argv)
{
    static const char* WHAT[] = {"load", "store", "add", "min", "max", "inc", "dec", "and", "or", "xor"};
    static const char* TYPES[] = {"u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bf16", "f32ftz", "tf32", "tf32ftz"};
    if (argc < 12) return 2;
    int what = -1, type = -1;
    for (int i = 0; i < 10; i++) if (!strcmp(argv[1], WHAT[i])) what = i;
    for (int i = 0; i < 13; i++) if (!strcmp(argv[2], TYPES[i])) type = i;
    if (what < 0 || type < 0) return 2;
    auto sizes = numbers(argv[3]), strides = numbers(argv[4]), box = numbers(argv[5]), steps = numbers(argv[6]);
    int swizzle = atoi(argv[7]), interleave = atoi(argv[8]), fill = atoi(argv[9]), offset = atoi(argv[11]);
    auto at = numbers(argv[10]);
    unsigned rank = (unsigned)sizes.size();
    static const int BYTES[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    unsigned bytes = BYTES[type];
    cuuint64_t size64[5] = {}, stride64[5] = {};
    cuuint32_t box32[5] = {}, step32[5] = {};
    Coords coords = {};
    for (unsigned i = 0; i < rank; i++) {
        size64[i] = sizes[i];
        box32[i] = (unsigned)box[i];
        step32[i] = (unsigned)steps[i];
        coords.v[i] = (int)at[i];
        if (i + 1 < rank) stride64[i] = strides[i];
        bytes *= i == 0 && interleave == 0 ? box32[i] : (box32[i] + step32[i] - 1) / step32[i];
    }
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaFree(0) || cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found) || !entry) {
        printf("no cuTensorMapEncodeTiled\n");
        return 3;
    }
    auto encode = (CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
        const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
        CUtensorMapFloatOOBfill))entry;
    uint8_t *global, *shared;
    Result* result;
    cudaMalloc(&global, GLOBAL);
    cudaMalloc(&shared, SHARED);
    cudaMallocManaged(&result, sizeof(Result));
    std::vector<uint8_t> before(GLOBAL), after(GLOBAL), tile(SHARED);
    for (unsigned i = 0; i < GLOBAL; i++) before[i] = pattern(i, 0);
    cudaMemcpy(global, before.data(), GLOBAL, cudaMemcpyHostToDevice);
    CUtensorMap map;
    memset(&map, 0, sizeof map);
    CUresult encoded = encode(&map, (CUtensorMapDataType)type, rank, global + 16384, size64, stride64, box32, step32,
        (CUtensorMapInterleave)interleave, (CUtensorMapSwizzle)swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, (CUtensorMapFloatOOBfill)fill);
    if (encoded) {
        printf("encode %d\n", (int)encoded);
        return 0;
    }
    cudaFuncSetAttribute(probe, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED + 1024);
    probe<<<1, 1, SHARED + 1024>>>(map, coords, (int)rank, what, offset, bytes, shared, result);
    cudaError_t error = cudaDeviceSynchronize();
    if (error) {
        printf("error %d %s\n", (int)error, cudaGetErrorName(error));
        return 0;
    }
    cudaMemcpy(after.data(), global, GLOBAL, cudaMemcpyDeviceToHost);
    cudaMemcpy(tile.data(), shared, SHARED, cudaMemcpyDeviceToHost);
    printf("done %u bytes %u shared %016llx global %016llx barrier %016llx\n", result->done, bytes, (unsigned long long)fnv(tile),
        (unsigned long long)fnv(after), result->barrier);
    if (argc > 12) {
        FILE* to = fopen(argv[12], "w");
        dump(to, "map", std::vector<uint8_t>((uint8_t*)&map, (uint8_t*)&map + 128));
        if (what == 0) dump(to, "shared", tile);
        if (what != 0) dump(to, "global", after);
        fclose(to);
    }
    return 0;
}
