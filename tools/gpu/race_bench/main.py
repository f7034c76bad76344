"""Runs all cases and prints a table."""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from .cases import CASES

FOLDER = pathlib.Path(__file__).resolve().parents[1]
# What ptxrace does once for a program, whatever its kernels do.
PHASES = ("instrument", "compile", "kernels", "analysis")


def arguments():
    parser = argparse.ArgumentParser(prog="bench", description="Times kernels natively, under ptxrace and under racecheck.")
    parser.add_argument("bin", help="the ptxrace binary")
    parser.add_argument("--runs", type=int, default=5, help="runs of each, of which the median counts (default 5)")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    parser.add_argument("--timeout", type=float, default=60, help="seconds that a run may take (default 60)")
    parser.add_argument("--json", type=pathlib.Path, help="write all numbers to this file too")
    parser.add_argument("--no-racecheck", action="store_true", help="leave racecheck out")
    parser.add_argument("--ptxrace-flag", action="append", default=[], help="a flag for ptxrace, such as =--no-triage")
    return parser.parse_args()


def native(number, runs, timeout, under=()):
    """What `native` says of a case, perhaps under a tool; an error as text."""
    command = [*under, sys.executable, "-m", "race_bench.native", str(number), str(runs)]
    environment = os.environ | {"PYTHONPATH": str(FOLDER)}
    pipe = subprocess.PIPE
    # A tool's child would go on, and take the GPU from what is timed next.
    ran = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True)
    try:
        out, err = ran.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(ran.pid, signal.SIGKILL)
        ran.communicate()
        return "timeout"
    for line in out.splitlines():
        if line.startswith('{"events"'):
            return json.loads(line)
    return "".join((out + err).strip().splitlines()[-1:]) or "no output"


def ptxrace(options, case):
    """Phases of the runs in seconds, the whole by the clock, and the verdict."""
    runs, verdict, records = [], "", 0
    with tempfile.TemporaryDirectory() as folder:
        launch, timings, report = (pathlib.Path(folder) / name for name in ("a.toml", "timings.json", "report.json"))
        launch.write_text(case.launch())
        for _ in range(options.runs):
            command = [options.bin, "run", str(case.module), "--launch", str(launch), "--backend", "gpu"]
            command += ["--timings", str(timings), "--format", "json", "--output", str(report), *options.ptxrace_flag]
            begin = time.perf_counter()
            ran = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout)
            whole = time.perf_counter() - begin
            if not report.exists():
                return None, (ran.stderr.strip().splitlines() or ["failed"])[0], 0
            said = json.loads(report.read_text())
            verdict, records = said["verdict"], sum(launch["records"] for launch in said["launches"])
            runs.append({name: ns / 1e9 for name, ns in json.loads(timings.read_text()).items()} | {"whole": whole})
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: statistics.median(run.get(name, 0) for run in runs) for name in names}, verdict, records


def shown(seconds):
    return "-" if seconds is None else f"{seconds * 1000:.3f}"


def main():
    options = arguments()
    sanitizer = None if options.no_racecheck else shutil.which("compute-sanitizer")
    rows = []
    columns = ["case", "M records", "native", *PHASES, "kernels+analysis", "M records/s", "whole", "racecheck", "verdict"]
    print(" | ".join(columns) + "      (medians in ms)", flush=True)
    for number, case in enumerate(CASES):
        name = f"{case.kernel} {case.size}"
        if options.filter not in name:
            continue
        plain = native(number, options.runs + 1, options.timeout)
        # The first launch loads code.
        alone = statistics.median(plain["events"][1:]) if isinstance(plain, dict) else None
        phases, verdict, records = ptxrace(options, case)
        checked, why = None, ""
        if sanitizer:
            under = native(number, options.runs + 1, options.timeout, (sanitizer, "--tool", "racecheck"))
            if isinstance(under, dict):
                checked = statistics.median(under["walls"][1:])
            else:
                why = f" (racecheck: {under})"
        both = phases and phases["kernels"] + phases["analysis"]
        rate = f"{records / both / 1e6:.1f}" if both else "-"
        cells = [name, f"{records / 1e6:.3f}", shown(alone)]
        cells += [shown(phases and phases[phase]) for phase in PHASES]
        cells += [shown(both or None), rate, shown(phases and phases["whole"]), shown(checked), verdict + why]
        print(" | ".join(cells), flush=True)
        rows.append({"case": name, "records": records, "native": alone, "ptxrace": phases, "racecheck": checked, "verdict": verdict})
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0
