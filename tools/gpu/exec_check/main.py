import argparse
import concurrent.futures
import json
import pathlib
import sys
import tempfile

from . import overhead
from .build import KERNELS, ROOT, Builder
from .cases import PROGRAMS, every
from .run import Run, Wrapped

STATES = ("as expected", "differs", "skipped")


def arguments():
    parser = argparse.ArgumentParser(
        prog="exec-check", description="Runs programs as they are and under `ptxrace exec`, and compares."
    )
    parser.add_argument("bin", help="the ptxrace binary; the wrapper is beside it")
    parser.add_argument("--backend", choices=("gpu", "emu"), default="gpu", help="of `ptxrace exec` (default gpu)")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    parser.add_argument("--family", action="append", help="only cases of this family")
    parser.add_argument("--list", action="store_true", help="print the cases and what is expected of them")
    parser.add_argument("--build-only", action="store_true", help="build all programs and run nothing")
    parser.add_argument("--nvcc", default="nvcc", help="the compiler")
    parser.add_argument("--python", default=sys.executable, help="what runs scripts")
    parser.add_argument("--rust-app", type=pathlib.Path, help="the test binary of tests/exec.rs, as cargo built it")
    parser.add_argument("--timeout", type=float, default=120, help="seconds that a run may take (default 120)")
    parser.add_argument("--jobs", type=int, default=4, help="builds, and cases, at a time (default 4)")
    parser.add_argument("--no-overhead", action="store_true", help="do not measure what calls and launches cost")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for programs and reports")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file too")
    options = parser.parse_args()
    if not pathlib.Path(options.bin).is_file():
        parser.error(f"no file `{options.bin}`")
    options.bin = str(pathlib.Path(options.bin).resolve())
    return options


def problems(case, native, wrapped):
    """What is not as expected, one line each."""
    if native and native.exit is None:
        yield "hung natively"
    if wrapped.exit is None:
        yield "hung"
        return
    if native:
        wanted = case.code(native.exit)
        if wrapped.exit != wanted:
            yield f"exit code {wrapped.exit}, not {wanted}"
        if case.stdout and wrapped.stdout != native.stdout:
            yield f"printed {wrapped.stdout.strip()!r}, natively {native.stdout.strip()!r}"
    if wrapped.report is None:
        yield f"no report: {last(wrapped.stderr)}"
        return
    if wrapped.verdict != case.verdict:
        yield f"verdict {wrapped.verdict}, not {case.verdict}"
    if wrapped.rules != sorted(case.rules):
        yield f"findings {' '.join(wrapped.rules) or 'none'}, not {' '.join(case.rules) or 'none'}"
    if wrapped.reasons != sorted(case.reasons):
        yield f"incomplete {' '.join(wrapped.reasons) or 'nothing'}, not {' '.join(case.reasons) or 'nothing'}"
    for missed in wrapped.report["incomplete"]:
        if missed["reason"] not in case.reasons:
            yield f"{missed['reason']}: {missed['detail']}"
    if case.tests and wrapped.tests != sorted(case.tests):
        yield f"attributed to {', '.join(wrapped.tests)}, not {', '.join(case.tests)}"


def last(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "nothing was said"


def check(options, folder, built, family, case):
    """A row of the table."""
    row = {"case": case.name, "family": family, "expected": " ".join((case.verdict, *case.rules)), "problems": []}
    command, why = built[case.program]
    if command is None:
        return row | {"state": "skipped", "problems": [why]}
    own = folder / "runs" / case.name.replace("/", ".")
    own.mkdir(parents=True, exist_ok=True)
    command = [*command, *(part.format(kernels=KERNELS) for part in case.arguments)]
    flags = [*case.flags, *(["--strict"] if case.strict else [])]
    native = Run(command, own, options.timeout) if options.backend == "gpu" else None
    if native and native.exit and PROGRAMS[case.program].compiler == "python":
        return row | {"state": "skipped", "problems": [f"fails without ptxrace: {last(native.stderr)}"]}
    wrapped = Wrapped(options, command, own, flags)
    if native and wrapped.stderr != native.stderr:
        (own / "stderr.txt").write_text(wrapped.stderr)
    found = list(problems(case, native, wrapped))
    row |= {"verdict": wrapped.verdict, "rules": wrapped.rules, "reasons": wrapped.reasons}
    row |= {"launches": len(wrapped.launches), "records": sum(one.get("records", 0) for one in wrapped.launches)}
    row |= {"exit": [native and native.exit, wrapped.exit], "problems": found}
    row |= {"seconds": [native and round(native.seconds, 2), round(wrapped.seconds, 2)]}
    if found:
        row |= {"stderr": wrapped.stderr[-2000:]}
    return row | {"state": "differs" if found else "as expected"}


def show(row, width):
    def pair(key):
        return "/".join("-" if one is None else f"{one:g}" for one in row.get(key, []))

    got = " ".join((row.get("verdict", "-"), *row.get("rules", ())))
    line = f"{row['case']:{width}}  {row['expected']:14} {got:18} {pair('exit'):>8} {pair('seconds'):>12}"
    print(f"{line} {row.get('launches', '-'):>8}  {row['state']}", flush=True)
    for problem in row["problems"]:
        print(f"    {problem}", flush=True)


def run(options, folder):
    cases = [(family, case) for family, case in every() if options.filter in case.name]
    cases = [(family, case) for family, case in cases if not options.family or family in options.family]
    if options.list:
        for family, case in cases:
            print(f"{family:10} {case.name:32} {' '.join((case.verdict, *case.rules, *case.reasons))}")
        return True
    if not cases:
        sys.exit("no such cases")
    wanted = {case.program for _, case in cases} | (set() if options.no_overhead else {"overhead"})
    built = Builder(options, folder).all({name: one for name, one in PROGRAMS.items() if name in wanted})
    if options.build_only:
        for name, (_, why) in built.items():
            print(f"{name:20} {why or 'built'}")
        return True
    width = max(len(case.name) for _, case in cases)
    header = f"{'case':{width}}  {'expected':14} {'got':18} {'exit':>8} {'seconds':>12} {'launches':>8}  state"
    print(header + "   (exit, seconds: native/wrapped)")
    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda job: check(options, folder, built, *job), cases):
            rows.append(row)
            show(row, width)
    costs = {} if options.no_overhead else overhead.measure(options, folder, built["overhead"])
    if options.json:
        options.json.write_text(json.dumps({"cases": rows, "overhead": costs}, indent=1))
    count = {state: sum(row["state"] == state for row in rows) for state in STATES}
    print(f"{len(rows)} cases: " + ", ".join(f"{count[state]} {state}" for state in STATES))
    return count["differs"] == 0


def main():
    options = arguments()
    if not KERNELS.exists():
        sys.exit(f"{KERNELS.relative_to(ROOT)} is missing")
    with tempfile.TemporaryDirectory(prefix="exec-check-") as scratch:
        folder = options.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        fine = run(options, folder.resolve())
    sys.exit(0 if fine else 1)
