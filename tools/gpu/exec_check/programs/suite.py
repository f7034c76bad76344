"""For pytest: one test whose kernel has a race, one without."""

import cupy
import numpy
import pytest

SOURCE = """
extern "C" __global__ void reverse(int* out, int wait) {
    __shared__ int tile[128];
    int t = threadIdx.x;
    tile[t] = t;
    if (wait) __syncthreads();
    out[t] = tile[127 - t];
}
"""


def reverse(wait):
    out = cupy.asarray(numpy.zeros(128, "i"))
    cupy.RawKernel(SOURCE, "reverse")((1,), (128,), (out, numpy.int32(wait)))
    return cupy.asnumpy(out)


@pytest.mark.parametrize("count", [1, 2])
def test_waits(count):
    for _ in range(count):
        assert list(reverse(1)) == list(range(127, -1, -1))


def test_forgets_to_wait():
    assert len(reverse(0)) == 128
