// A warp multiplies with `mma`, its operands loaded by `ldmatrix`: rows that other lanes have written, behind a warp
// barrier. The transpose of the sums goes through shared memory by `stmatrix`, behind another.
#include <cuda_fp16.h>

__device__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__global__ void product(const int* in, int* out)
{
    __shared__ alignas(16) __half a[16 * 16], b[16 * 8], c[8 * 16];
    unsigned t = threadIdx.x, x[4], y[2], z[2], zero = 0;
    for (int i = t; i < 256; i += 32) a[i] = __int2half_rn(in[i] % 7 - 3);
    for (int i = t; i < 128; i += 32) b[i] = __int2half_rn(in[i] % 5 - 2);
    __syncwarp();
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(smem(&a[t % 16 * 16 + t / 16 * 8])) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(y[0]), "=r"(y[1]) : "r"(smem(&b[t % 16 * 8])) : "memory");
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %8};"
                 : "=r"(z[0]), "=r"(z[1])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(zero));
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                 :: "r"(smem(&c[t % 8 * 16 + t / 8 % 2 * 8])), "r"(z[0]), "r"(z[1]) : "memory");
    __syncwarp();
    for (int i = t; i < 128; i += 32) out[i] = __half2int_rn(c[i]);
}
