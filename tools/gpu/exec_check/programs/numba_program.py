"""Kernels that Numba compiles, clean or with a race; their PTX does not pass through ptxas."""

import sys

import numpy
from numba import cuda


@cuda.jit
def double(out, data):
    at = cuda.grid(1)
    out[at] = data[at] * 2


@cuda.jit
def reverse(out, sink):
    tile = cuda.shared.array(128, numpy.int32)
    at = cuda.threadIdx.x
    tile[at] = at
    sink[at] = tile[127 - at]
    out[at] = 1


def clean():
    data = cuda.to_device(numpy.arange(256, dtype="i"))
    out = cuda.to_device(numpy.zeros(256, "i"))
    double[2, 128](out, data)
    print("sum:", int(out.copy_to_host().sum()))


def race():
    out, sink = cuda.to_device(numpy.zeros(128, "i")), cuda.to_device(numpy.zeros(128, "i"))
    reverse[1, 128](out, sink)
    print("ones:", int(out.copy_to_host().sum()))


{"clean": clean, "race": race}[sys.argv[1]]()
