"""What one instruction form is: its text, its operands, and how exact its result has to be."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Bound:
    """How far an approximate result may be from the exact one. What is nearer by any of the three passes."""

    type: str
    ulps: float = 0
    relative: float = 0.0
    absolute: float = 0.0
    # Upper or lower half of the result alone is specified: `.ftz.f64` approximations leave the lower one 0.
    pair: bool = False


@dataclass
class Form:
    """A kernel that reads the operands, executes `body` and stores the results.

    `sources` and `results` name kinds (see values.py). In `body`, `{d0}` and so on are destinations, `{a0}` and
    so on are sources; `{i}` is the index of the lane, as a `.u32`.
    """

    name: str
    sources: tuple
    results: tuple
    body: str = ""
    version: str = "8.0"
    target: str = "sm_90"
    bound: Bound | None = None
    # How the lanes are laid out. Their number is always the same.
    grid: tuple = (16, 1, 1)
    block: tuple = (256, 1, 1)
    declare: str = ""
    # The results depend on which lanes there are besides: it is always run with all.
    whole: bool = False
    family: str = field(default="", compare=False)

    def text(self):
        """The instructions, without operands filled in."""
        if self.body:
            return self.body
        operands = [f"{{d{i}}}" for i in range(len(self.results))] + [f"{{a{i}}}" for i in range(len(self.sources))]
        return f"{self.name} {', '.join(operands)};"
