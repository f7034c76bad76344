"""A Triton kernel, clean or with a race between programs. Memory is filled by copies: PyTorch's own kernels have no PTX."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def clean(data, out, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(out + at, tl.load(data + at) * 2)


@triton.jit
def race(data, out, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    # Every program writes the same elements.
    tl.store(data + tl.arange(0, size), at)
    tl.store(out + at, at * 0 + 1)


@triton.jit
def row_sums(data, out, size: tl.constexpr):
    row = tl.program_id(0)
    values = tl.load(data + row * size + tl.arange(0, size))
    tl.store(out + row, tl.sum(values, axis=0))


def main():
    kernel = {"clean": clean, "race": race, "reduce": row_sums}[sys.argv[1]]
    data = torch.arange(4 * 128, dtype=torch.int32).cuda()
    out = torch.zeros(4 * 128, dtype=torch.int32).cuda()
    kernel[(4,)](data, out, 128)
    print("sum:", out.cpu().sum().item())


main()
