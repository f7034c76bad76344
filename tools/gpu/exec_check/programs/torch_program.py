"""PyTorch: its own kernels have machine code only; what `torch.compile` makes has PTX."""

import sys

import torch


def library():
    data = torch.arange(1024, dtype=torch.float32).cuda()
    print("sum:", (data @ data).item(), torch.sort(data, descending=True)[0][0].item())


def compiled():
    run = torch.compile(lambda x: torch.relu(x) * 2 + 1)
    print("sum:", run(torch.arange(1024, dtype=torch.float32).cuda()).cpu().sum().item())


{"library": library, "compiled": compiled}[sys.argv[1]]()
