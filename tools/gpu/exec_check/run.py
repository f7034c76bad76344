"""Runs a program as it is or under `ptxrace exec`."""

import json
import os
import signal
import subprocess
import time

from .build import EMULATED

# No pool of compiler processes for a single kernel, and no files beside the sources.
QUIET = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class Run:
    """One run: `exit` (as a shell gives it, `None` when it hung), `stdout`, `stderr`, `seconds`."""

    def __init__(self, command, folder, timeout):
        started = time.monotonic()
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=folder,
            env=os.environ | QUIET,
            start_new_session=True,
        )
        try:
            self.stdout, self.stderr = process.communicate(timeout=timeout)
            code = process.returncode
            self.exit = 128 - code if code < 0 else code
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            self.stdout, self.stderr = process.communicate()
            self.exit = None
        self.seconds = time.monotonic() - started


def devices(options):
    """What says how many devices there are, if that can be chosen."""
    return ["--emu-devices", str(EMULATED)] if options.backend == "emu" else []


class Wrapped(Run):
    """A run under `ptxrace exec`, and its report."""

    def __init__(self, options, command, folder, flags):
        file = folder / "report.json"
        own = [options.bin, "exec", "--backend", options.backend, *devices(options), "--format", "json", "--output", str(file)]
        super().__init__([*own, *flags, "--", *command], folder, options.timeout)
        try:
            self.report = json.loads(file.read_text())
        except (OSError, ValueError):
            self.report = None

    @property
    def verdict(self):
        return self.report["verdict"] if self.report else "none"

    def _of(self, key, field):
        return sorted({one[field] for one in (self.report or {}).get(key, [])})

    @property
    def rules(self):
        return self._of("findings", "rule")

    @property
    def reasons(self):
        return self._of("incomplete", "reason")

    @property
    def launches(self):
        return (self.report or {}).get("launches", [])

    @property
    def tests(self):
        """The tests that findings are attributed to."""
        tests = {launch["id"]: launch.get("test") for launch in self.launches}
        found = (self.report or {}).get("findings", [])
        return sorted({str(tests.get(one["launch"])) for one in found})
