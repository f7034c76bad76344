"""Runs forms on a backend, as few modules as possible, and finds out which one made a module fail."""

import json
import pathlib
import re
import subprocess
import tempfile
import threading
from dataclasses import dataclass

from .module import Module

GPU_LOCK = threading.Lock()


@dataclass
class Outcome:
    """The bytes of all results of a form, or why there are none."""

    output: bytes | None
    reason: str = ""
    # Whether the backend said that it does not have this, rather than failing.
    refused: bool = False


def outcomes(options, backend, forms):
    """The outcome of each form, by name."""
    found = {}
    waiting = [list(forms)]
    while waiting:
        some = waiting.pop()
        if not some:
            continue
        with tempfile.TemporaryDirectory() as folder:
            module = Module(some, options.trimmed)
            run = once(options, backend, module, pathlib.Path(folder))
        if run.done:
            found |= {form.name: Outcome(run.output(module, index)) for index, form in enumerate(some)}
        elif run.culprit is not None:
            # Launches go in order: those before are done.
            at = run.culprit
            found |= {form.name: Outcome(run.output(module, index)) for index, form in enumerate(some[:at])}
            found[some[at].name] = Outcome(None, run.reason, True)
            waiting.append(some[at + 1 :])
        elif len(some) == 1:
            found[some[0].name] = Outcome(None, run.reason, run.refused)
        else:
            waiting += [some[: len(some) // 2], some[len(some) // 2 :]]
    return found


class Once:
    """One run of a module."""

    def __init__(self, reason="", done=False, dump=b"", culprit=None, refused=False):
        self.reason, self.done, self.dump, self.culprit, self.refused = reason, done, dump, culprit, refused

    def output(self, module, index):
        at = module.outputs[index]
        return self.dump[at : at + 8 * len(module.lanes[index].run) * len(module.forms[index].results)]


def once(options, backend, module, folder):
    module.write(folder)
    report, dump = folder / "report.json", folder / "out.bin"
    command = [options.bin, "run", str(folder / "module.ptx"), "--backend", backend, "--timeout", f"{options.timeout:g}"]
    command += ["--dump", f"out={dump}", "--format", "json", "--output", str(report)]
    if backend == "emu":
        command += ["--seed", "0"]
    try:
        if backend == "gpu":
            with GPU_LOCK:
                ended = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout + 60)
        else:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout + 60)
    except subprocess.TimeoutExpired:
        return Once("hung")
    text = next((line for line in ended.stderr.splitlines() if line.startswith("error")), ended.stderr.strip()[:200])
    try:
        read = json.loads(report.read_text())
        contents = dump.read_bytes() if dump.exists() else b""
    except (OSError, ValueError):
        return Once(f"exit code {ended.returncode}: {text}", refused=ended.returncode in (2, 3))
    incomplete = read["incomplete"]
    unknown = [one for one in incomplete if one["reason"] == "unknown-instruction"]
    # What ptxrace does not know, a GPU runs all the same.
    unseen = backend == "gpu" and ended.returncode == 3 and not read["findings"] and len(unknown) == len(incomplete)
    if (unseen or ended.returncode == 0 and not incomplete) and len(contents) == module.output_bytes:
        return Once(done=True, dump=contents)
    reasons = [f"{one.get('reason')}: {one.get('detail')}" for one in incomplete]
    reasons += [f"{one['rule']}: {one['missing']}" for one in read["findings"]]
    reason = "; ".join(reasons) or f"exit code {ended.returncode}: {text}"
    if len(incomplete) == len(unknown) == 1 and backend == "emu" and len(contents) == module.output_bytes:
        line = re.search(r"module\.ptx:(\d+)", unknown[0]["detail"])
        if line:
            detail = re.sub(r" at \S*module\.ptx:\d+", "", unknown[0]["detail"])
            return Once(detail, dump=contents, culprit=owner(folder / "module.ptx", int(line[1])))
    return Once(re.sub(r" at \S*module\.ptx:\d+", "", reason), refused=bool(unknown) or "load" in reason)


def owner(path, line):
    """The number of the kernel that a line is in."""
    entries = [text for text in path.read_text().splitlines()[:line] if text.startswith(".visible .entry k")]
    return int(re.match(r"\.visible \.entry k(\d+)", entries[-1])[1]) if entries else None
