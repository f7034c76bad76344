"""CuPy's kernels: one of one's own, clean or with a race, and those that CuPy makes."""

import sys

import cupy
import numpy

SOURCE = """
extern "C" __global__ void reverse(int* out, int* sink, int wait) {
    __shared__ int tile[128];
    int t = threadIdx.x;
    tile[t] = t;
    if (wait) __syncthreads();
    sink[t] = tile[127 - t];
    out[t] = 1;
}
"""


def raw(wait):
    kernel = cupy.RawKernel(SOURCE, "reverse")
    out, sink = cupy.asarray(numpy.zeros(128, "i")), cupy.asarray(numpy.zeros(128, "i"))
    kernel((1,), (128,), (out, sink, numpy.int32(wait)))
    print("ones:", int(cupy.asnumpy(out).sum()))


def made():
    data = cupy.asarray(numpy.arange(1000, dtype="i"))
    print("sum:", int((data * 2 + 1).sum()))


{"clean": lambda: raw(1), "race": lambda: raw(0), "made": made}[sys.argv[1]]()
