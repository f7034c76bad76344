"""What is run, and what shall come of it."""

import dataclasses

RACES = 66
INCONCLUSIVE = 67


@dataclasses.dataclass(frozen=True)
class Case:
    """A run of a program. Its output and, without a race, its exit code are those that it has by itself."""

    name: str
    program: str  # of `PROGRAMS`
    arguments: tuple = ()
    verdict: str = "clean"
    rules: tuple = ()  # of the findings, each once
    reasons: tuple = ()  # of `incomplete`, each once
    flags: tuple = ()  # of `ptxrace exec`
    tests: tuple = ()  # that findings are attributed to
    strict: bool = False
    stdout: bool = True  # whether it is compared

    def code(self, native):
        """The exit code under `exec`."""
        if self.verdict == "race":
            return RACES
        if self.verdict == "inconclusive" and self.strict:
            return INCONCLUSIVE
        return native


@dataclasses.dataclass(frozen=True)
class Program:
    """Something to run: sources to build with a compiler and flags, or a script."""

    sources: tuple = ()
    flags: tuple = ()
    compiler: str = "nvcc"  # `nvcc`, `cc`, `python` (with a module that has to be there), `given`
    module: str = ""
    devices: int = 1  # that it needs


def nvcc(*sources, flags=()):
    return Program(tuple(sources), ("-lineinfo", *flags))


PROGRAMS = {
    "blocks": nvcc("blocks.cu"),
    "blocks-sm_90": nvcc("blocks.cu", flags=("-arch=sm_90",)),
    "blocks-sm_90a": nvcc("blocks.cu", flags=("-arch=sm_90a",)),
    "blocks-all-major": nvcc("blocks.cu", flags=("-arch=all-major",)),
    "blocks-shared": nvcc("blocks.cu", flags=("-cudart", "shared")),
    "blocks-lz4": nvcc("blocks.cu", flags=("-arch=sm_90", "-Xfatbin=-compress-mode=speed")),
    "blocks-raw": nvcc("blocks.cu", flags=("-arch=sm_90", "-Xfatbin=-compress-mode=none")),
    "blocks-debug": nvcc("blocks.cu", flags=("-arch=sm_90", "-G")),
    "blocks-opaque": nvcc("blocks.cu", flags=("-gencode", "arch=compute_90,code=sm_90")),
    "blocks-per-thread": nvcc("blocks.cu", flags=("-default-stream", "per-thread")),
    "linked": nvcc("linked_main.cu", "linked_part.cu", flags=("-rdc=true", "-arch=sm_90")),
    "order": nvcc("order.cu", flags=("-std=c++17",)),
    "graphs": nvcc("graphs.cu", flags=("-arch=sm_90",)),
    "graphs-per-thread": nvcc("graphs.cu", flags=("-arch=sm_90", "-default-stream", "per-thread")),
    "textures": nvcc("textures.cu", flags=("-arch=sm_90",)),
    "ends": nvcc("ends.cu"),
    "to-host": nvcc("to_host.cu"),
    "devices": dataclasses.replace(nvcc("devices.cu"), devices=2),
    "tensors": nvcc("tensors.cu", flags=("-arch=sm_90", "-std=c++17")),
    "driver": Program(("app.c",), compiler="cc"),
    "driver-devices": Program(("devices.c",), compiler="cc", devices=2),
    "driver-graphs": Program(("graphs.c",), compiler="cc"),
    "driver-tensors": Program(("tensors.c",), compiler="cc"),
    "driver-textures": Program(("textures.c",), compiler="cc"),
    "compilers": nvcc("compilers.c", flags=("-cudart", "none", "-lcuda", "-ldl")),
    "compilers-linked": nvcc(
        "compilers.c", flags=("-DLINKED", "-cudart", "none", "-lcuda", "-lnvrtc", "-lnvJitLink")
    ),
    "overhead": Program(("overhead.c",), compiler="cc"),
    "rust": Program(compiler="given"),
    "triton": Program(("triton_program.py",), compiler="python", module="triton"),
    "cupy": Program(("cupy_program.py",), compiler="python", module="cupy"),
    "torch": Program(("torch_program.py",), compiler="python", module="torch"),
    "numba": Program(("numba_program.py",), compiler="python", module="numba"),
    "suite": Program(("suite.py",), compiler="python", module="pytest"),
}


def race(program, scenario, *rules, **more):
    return Case(f"{program}/{scenario}", program, (scenario,), verdict="race", rules=rules, **more)


def clean(program, scenario, **more):
    return Case(f"{program}/{scenario}", program, (scenario,), **more)


def opaque(program, scenario, name="", **more):
    name = f"{program}/{name or scenario}"
    return Case(name, program, (scenario,), verdict="inconclusive", reasons=("opaque-kernel",), **more)


def inside():
    """Races inside of launches."""
    yield clean("blocks", "clean")
    yield race("blocks", "shared-race", "R001")
    yield race("blocks", "publish-race", "R005")
    yield clean("blocks", "publish")
    yield clean("blocks", "cooperative")
    yield race("blocks", "grid-race", "R003")
    yield clean("blocks", "large-block")
    yield clean("blocks", "dynamic-shared")
    yield clean("blocks", "symbols")
    yield clean("blocks", "print")
    yield clean("tensors", "clean")
    yield race("tensors", "no-wait", "R008")
    yield race("tensors", "no-fence", "R008")


def variants():
    """The same program, built in other ways."""
    for kind in ("sm_90", "sm_90a", "shared", "lz4", "raw", "debug", "per-thread"):
        yield clean(f"blocks-{kind}", "clean")
        yield race(f"blocks-{kind}", "shared-race", "R001")
    yield clean("blocks-sm_90", "cluster")
    yield race("blocks-sm_90", "cluster-race", "R003")
    yield clean("blocks-sm_90", "symbols")
    # Machine code for the device, and PTX for a later one alone.
    yield opaque("blocks-all-major", "clean")
    yield opaque("blocks-opaque", "shared-race")
    yield opaque("blocks-opaque", "clean", "strict", strict=True)
    # Relocatable device code is linked to machine code; its PTX lies beside it.
    yield clean("linked", "clean")
    yield race("linked", "race", "R001")


def between():
    """Order between launches, copies and allocations."""
    yield race("order", "streams-race", "R006")
    for scenario in ("streams-event", "streams-host", "streams-device", "streams-event-host", "legacy-stream"):
        yield clean("order", scenario)
    yield race("order", "copy-race", "R006")
    yield clean("order", "copy-event")
    yield clean("order", "pinned")
    yield race("order", "pinned-race", "R006")
    yield clean("order", "stream-memory")
    yield race("order", "stream-memory-race", "R006")
    yield clean("order", "host-function")
    yield clean("order", "threads")


def graphs():
    """Graphs of the runtime and of the driver."""
    for program in ("graphs", "graphs-per-thread"):
        yield clean(program, "captured")
        yield race(program, "captured-race", "R006")
        yield clean(program, "copies")
        yield clean(program, "nodes")
        yield race(program, "nodes-race", "R006")
    yield clean("graphs", "changed")
    yield clean("graphs", "beside")
    yield race("graphs", "beside-race", "R006")
    yield clean("graphs", "cooperative")
    yield dataclasses.replace(opaque("graphs", "memory"), reasons=("unsupported-call",))
    racy = ("diamond-race", "memset-race", "captured-race", "child-race", "set-race", "beside-race")
    tidy = ("chain", "diamond", "captured", "unjoined", "child", "set", "update", "disabled", "beside", "twice")
    for scenario in racy + tidy:
        rules = ("R006",) if scenario in racy else ()
        verdict = "race" if rules else "clean"
        yield Case(f"driver-graphs/{scenario}", "driver-graphs", (scenario, "{kernels}"), verdict, rules)
    for scenario in ("memory", "updated-node"):
        arguments = (scenario, "{kernels}")
        unsure = {"verdict": "inconclusive", "reasons": ("unsupported-call",)}
        yield Case(f"driver-graphs/{scenario}", "driver-graphs", arguments, **unsure)


def devices():
    """Several devices in one process."""
    yield race("devices", "race", "R006")
    yield race("devices", "waits-elsewhere-race", "R006")
    yield race("devices", "counter-race", "R004")
    yield race("devices", "copy-race", "R006")
    for scenario in ("waits", "event", "counter", "copy"):
        yield clean("devices", scenario)
    expected = {
        "own": (),
        "nothing": ("R006",),
        "waits": (),
        "waits-elsewhere": ("R006",),
        "event": (),
        "tally": ("R004",),
        "tally-system": (),
        "copy": (),
        "copy-before": (),
        "copy-apart": ("R006",),
    }
    for scenario, rules in expected.items():
        verdict = "race" if rules else "clean"
        yield Case(f"driver-devices/{scenario}", "driver-devices", (scenario, "{kernels}"), verdict, rules)


def host():
    """Publications to the host, of which some get a warning."""
    for scenario in ("pinned", "managed"):
        yield clean("to-host", scenario, rules=("R004",))
    for scenario in ("pinned-system", "managed-system", "progress"):
        yield clean("to-host", scenario)


def textures():
    """Textures and surfaces of the runtime and of the driver."""
    for scenario in ("memory", "rows", "array", "drawn"):
        yield clean("textures", scenario)
    yield race("textures", "memory-race", "R009")
    yield race("textures", "drawn-race", "R003")
    yield race("textures", "shifted-race", "R001")
    yield race("textures", "copied-race", "R006")
    racy = {"linear-race": "R009", "copy-race": "R006", "streams-race": "R006"}
    for scenario in ("linear", "array", "copy", *racy):
        rules = (racy[scenario],) if scenario in racy else ()
        verdict = "race" if rules else "clean"
        yield Case(f"driver-textures/{scenario}", "driver-textures", (scenario, "{kernels}"), verdict, rules)


def ends():
    """How programs end. Findings that were made before are reported."""
    yield Case("ends/nothing", "ends", ("nothing",), verdict="inconclusive", reasons=("no-launch",))
    for scenario in ("status", "abort", "kill", "leave", "reset", "child-exec", "child-fork"):
        yield race("ends", scenario, "R001")
    for scenario in ("status", "abort", "kill", "leave"):
        yield Case(f"ends/{scenario}-allowed", "ends", (scenario,), flags=("--allow", "R001"))
    yield Case("ends/kernel", "ends", ("status",), verdict="race", rules=("R001",), flags=("--kernel", "rev*"))
    yield Case("ends/fault", "ends", ("fault",), verdict="inconclusive", reasons=("fault",))


def driver():
    """Programs that use the driver without the runtime: in C, and through cudarc."""
    expected = {
        "clean": (),
        "status": (),
        "race": ("R001",),
        "streams": ("R006",),
        "event": (),
        "host": (),
        "value": (),
        "value-batch": (),
        "value-early": ("R006",),
        "copy": ("R006",),
        "copy-waits": (),
        "before": ("R006",),
        "threads": (),
        "parent": ("R001",),
        "abort": ("R001",),
        "kill": ("R001",),
        "leave": ("R001",),
    }
    for scenario, rules in expected.items():
        yield Case(
            f"driver/{scenario}",
            "driver",
            (scenario, "{kernels}"),
            verdict="race" if rules else "clean",
            rules=rules,
        )
    unknown = ("value-unknown", "{kernels}")
    reasons = ("unsupported-call",)
    yield Case("driver/value-unknown", "driver", unknown, verdict="inconclusive", reasons=reasons)
    yield race("driver-tensors", "race", "R008")
    for scenario in ("clean", "replaced", "in-memory"):
        yield clean("driver-tensors", scenario)
    for scenario, rules in {
        "clean": (),
        "race": ("R001",),
        "streams": ("R006",),
        "event": (),
        "fatbin": ("R001",),
    }.items():
        yield Case(
            f"rust/{scenario}",
            "rust",
            ("--app", scenario, "{kernels}"),
            verdict="race" if rules else "clean",
            rules=rules,
        )


def compilers():
    """Programs that compile or link when they run, and load the machine code."""
    for what, library in {"nvrtc": "libnvrtc.so", "nvjitlink": "libnvJitLink.so"}.items():
        opened = (what, "{kernels}", f"/usr/local/cuda/lib64/{library}")
        yield Case(f"compilers/{what}", "compilers", opened, verdict="race", rules=("R001",))
        linked = (what, "{kernels}")
        yield Case(f"compilers-linked/{what}", "compilers-linked", linked, verdict="race", rules=("R001",))


def frameworks():
    yield clean("triton", "clean")
    yield clean("triton", "reduce")
    yield race("triton", "race", "R003")
    yield clean("cupy", "clean")
    yield race("cupy", "race", "R001")
    yield clean("cupy", "made")
    yield opaque("torch", "library")
    yield opaque("torch", "library", "library-strict", strict=True)
    # Besides what it has compiled, it launches kernels of its own.
    yield opaque("torch", "compiled")
    yield opaque("torch", "graph")
    yield race("torch", "graph-race", "R006", reasons=("opaque-kernel",))
    yield clean("numba", "clean")
    yield race("numba", "race", "R001")
    # Times are among what pytest prints.
    test = "suite.py::test_forgets_to_wait"
    yield Case("pytest", "suite", verdict="race", rules=("R001",), tests=(test,), stdout=False)


def every():
    for family in (inside, variants, between, graphs, textures, devices, host, ends, driver, compilers, frameworks):
        for case in family():
            yield family.__name__, case
