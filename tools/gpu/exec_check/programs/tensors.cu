// Copies by a tensor map, whose encoder is asked of the runtime. The argument says what is done.
#include <cuda.h>

#include <string>
#include <vector>

#include "common.cuh"

// A block loads a box, doubles it and stores it in the same place of another tensor.
__global__ void twice(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out, bool waits, bool fences)
{
    __shared__ alignas(128) int tile[8][32];
    __shared__ alignas(8) unsigned long long bar;
    unsigned at = (unsigned)__cvta_generic_to_shared(tile), barrier = (unsigned)__cvta_generic_to_shared(&bar);
    int t = threadIdx.x, x = 32 * blockIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier) : "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(barrier) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at),
                     "l"(&in), "r"(x), "r"(0), "r"(barrier) : "memory");
    }
    int done = t != 0 && !waits;
    for (int tries = 0; tries < 1000000 && !done; ++tries)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(barrier) : "memory");
    for (int y = 0; y < 8; ++y) tile[y][t] *= 2;
    if (fences) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&out), "r"(x), "r"(0),
                     "r"(at) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

int main(int argc, char** argv)
{
    std::string what = argc > 1 ? argv[1] : "";
    const int width = 64, height = 8, count = width * height;
    int *from, *to;
    CHECK(cudaMalloc(&from, count * sizeof(int)));
    CHECK(cudaMalloc(&to, count * sizeof(int)));
    std::vector<int> numbers(count);
    for (int i = 0; i < count; i++) numbers[i] = i;
    CHECK(cudaMemcpy(from, numbers.data(), count * sizeof(int), cudaMemcpyHostToDevice));
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    auto encode = (decltype(&cuTensorMapEncodeTiled))entry;
    cuuint64_t sizes[] = {width, height}, strides[] = {width * sizeof(int)};
    cuuint32_t box[] = {32, 8}, steps[] = {1, 1};
    CUtensorMap maps[2];
    for (int i = 0; i < 2; i++)
        if (encode(&maps[i], CU_TENSOR_MAP_DATA_TYPE_INT32, 2, i ? to : from, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
            return 3;
    twice<<<2, 32>>>(maps[0], maps[1], what != "no-wait", what != "no-fence");
    CHECK(cudaMemcpy(numbers.data(), to, count * sizeof(int), cudaMemcpyDeviceToHost));
    if (what == "clean") printf("%d %d\n", numbers[1], numbers[count - 1]);
    return 0;
}
