"""PyTorch: its own kernels have machine code only; what `torch.compile` makes has PTX."""

import sys

import torch


def library():
    data = torch.arange(1024, dtype=torch.float32).cuda()
    print("sum:", (data @ data).item(), torch.sort(data, descending=True)[0][0].item())


def compiled():
    run = torch.compile(lambda x: torch.relu(x) * 2 + 1)
    print("sum:", run(torch.arange(1024, dtype=torch.float32).cuda()).cpu().sum().item())


def graph(ordered):
    """Triton kernels in a graph, in branches that are ordered, or not."""
    import triton
    import triton.language as tl

    @triton.jit
    def fill(to, value, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(to + at, value)

    data = torch.zeros(1024, dtype=torch.int32, device="cuda")
    fill[(4,)](data, 1, BLOCK=256)
    torch.cuda.synchronize()
    captured, other = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(captured):
        fill[(4,)](data, 5, BLOCK=256)
        other.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(other):
            fill[(4,)](data, 4, BLOCK=256)
        if ordered:
            torch.cuda.current_stream().wait_stream(other)
        fill[(4,)](data, 3, BLOCK=256)
        torch.cuda.current_stream().wait_stream(other)
        total = data.sum()
    for _ in range(2):
        captured.replay()
    print("sum:", total.item() if ordered else total.shape)


{
    "library": library,
    "compiled": compiled,
    "graph": lambda: graph(True),
    "graph-race": lambda: graph(False),
}[sys.argv[1]]()
