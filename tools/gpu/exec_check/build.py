"""Builds programs, and says what cannot be built here."""

import concurrent.futures
import importlib.util
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE / "programs"
ROOT = HERE.parents[2]
KERNELS = ROOT / "tests/exec/kernels.ptx"
# Devices that the emulator offers.
EMULATED = 2
# Where the driver's library is to be linked against.
STUBS = ("lib64/stubs", "lib/stubs", "targets/x86_64-linux/lib/stubs")


def source(name):
    """A program's source: here, or with the tests of `exec`."""
    here = SOURCES / name
    return here if here.exists() else ROOT / "tests/exec" / name


def devices(options):
    """How many devices there are for programs."""
    if options.build_only:
        return sys.maxsize
    if options.backend == "emu":
        return EMULATED
    try:
        listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True)
    except OSError:
        return 1
    return max(1, sum(line.startswith("GPU ") for line in listed.stdout.splitlines()))


class Builder:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.devices = devices(options)
        self.nvcc = shutil.which(options.nvcc) or next(iter(pathlib.Path("/usr/local").glob("cuda/bin/nvcc")), None)

    def all(self, programs):
        """For each program its command, or why there is none."""
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            built = pool.map(lambda item: self.one(*item), programs.items())
            return dict(zip(programs, built))

    def one(self, name, program):
        """The command of a program and why there is none, one of which is `None`."""
        if program.devices > self.devices:
            return None, f"needs {program.devices} devices, and there are {self.devices}"
        if program.compiler == "given":
            given = self.options.rust_app
            return ([str(given.resolve())], None) if given else (None, "no `--rust-app`")
        if program.compiler == "python":
            script = str(source(program.sources[0]))
            if importlib.util.find_spec(program.module) is None:
                return None, f"no Python module `{program.module}`"
            tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if program.module == "pytest" else []
            return [self.options.python, *tests, script], None
        to = self.folder / name
        sources = [str(source(one)) for one in program.sources]
        if program.compiler == "nvcc":
            if not self.nvcc:
                return None, "no nvcc"
            command = [self.nvcc, *program.flags, *sources, "-o", to]
        else:
            command = ["cc", "-O1", *sources, "-o", to, *self.driver(), "-lcuda", "-lpthread"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            return None, f"does not build: {said[0] if said else done.returncode}"
        return [str(to)], None

    def driver(self):
        """Flags to link against the driver: CUDA's stub of it, or the wrapper, which has its name and symbols."""
        if self.nvcc:
            home = pathlib.Path(self.nvcc).resolve().parents[1]
            stubs = [home / stub for stub in STUBS if (home / stub / "libcuda.so").exists()]
            if stubs:
                return ["-L", str(stubs[0])]
        wrapper = pathlib.Path(self.options.bin).resolve().parent / "libptxrace_preload.so"
        link = self.folder / "link"
        link.mkdir(exist_ok=True)
        if not (link / "libcuda.so").exists():
            (link / "libcuda.so").symlink_to(wrapper)
        return ["-L", str(link)]
