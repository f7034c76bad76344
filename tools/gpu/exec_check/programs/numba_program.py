"""A kernel that Numba compiles; its PTX does not pass through ptxas."""

import numpy
from numba import cuda


@cuda.jit
def double(out, data):
    at = cuda.grid(1)
    out[at] = data[at] * 2


data = cuda.to_device(numpy.arange(256, dtype="i"))
out = cuda.to_device(numpy.zeros(256, "i"))
double[2, 128](out, data)
print("sum:", int(out.copy_to_host().sum()))
