"""What is timed: kernels of `benches/kernels`, at several sizes."""

import dataclasses
import pathlib

KERNELS = pathlib.Path(__file__).resolve().parents[3] / "benches" / "kernels"


@dataclasses.dataclass(frozen=True)
class Case:
    """A launch. Arguments are `(buffer's 32-bit words, value of each)` or an integer."""

    kernel: str
    size: str
    grid: tuple
    block: tuple
    args: tuple

    @property
    def module(self):
        return KERNELS / f"{self.kernel}.ptx"

    def launch(self):
        """The same as a launch description of ptxrace."""
        words = []
        for at, arg in enumerate(self.args):
            if isinstance(arg, int):
                words.append(f"a{at}:i32={arg}")
            else:
                words.append(f"a{at}:u32[{arg[0]}]={arg[1]}")
        args = ", ".join(f'"{word}"' for word in words)
        return f"[[launch]]\ngrid = {list(self.grid)}\nblock = {list(self.block)}\nargs = [{args}]\n"


def matmul(n):
    return Case("matmul", str(n), (n // 32, n // 32, 1), (32, 32, 1), ((n * n, 0), (n * n, 0), (n * n, 0), n))


def reduce(n):
    return Case("reduce", str(n), (1024, 1, 1), (256, 1, 1), ((n, 0), (1024, 0), n))


def transpose(n):
    return Case("transpose", str(n), (n // 32, n // 32, 1), (32, 8, 1), ((n * n, 0), (n * n, 0), n))


def histogram(n):
    return Case("histogram", str(n), (1024, 1, 1), (256, 1, 1), ((n, "random:1"), (256, 0), n))


def stencil(n):
    return Case("stencil", str(n), (n // 32, n // 8, 1), (32, 8, 1), ((n * n, 0), (n * n, 0), n))


CASES = [
    *map(matmul, (256, 512, 1024)),
    *map(reduce, (1 << 20, 1 << 24)),
    *map(transpose, (512, 2048)),
    *map(histogram, (1 << 18, 1 << 22)),
    *map(stencil, (1024, 2048)),
]
