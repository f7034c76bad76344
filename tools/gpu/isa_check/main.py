"""The command line: forms in, a row for each out."""

import argparse
import concurrent.futures
import datetime
import json
import pathlib
import subprocess
import sys

from . import record, run, trim
from .compare import compare
from .forms import FAMILIES, all_forms
from .module import Module

STATES = {
    "equal": "equal",
    "within": "within bound",
    "differs": "differ",
    "unsupported": "unsupported in the emulator",
    "refused": "refused by the driver",
    "failed": "failed",
    "missing": "not in the record",
    "ran": "ran on one side",
}
BAD = ("differs", "failed")


def arguments():
    parser = argparse.ArgumentParser(
        prog="isa-check", description="Compares the emulator with a GPU, an instruction form at a time."
    )
    parser.add_argument("bin", help="the ptxrace binary")
    parser.add_argument("--filter", default="", help="only forms whose name contains this")
    parser.add_argument("--family", action="append", choices=FAMILIES, help="only forms of this family; may be repeated")
    parser.add_argument("--emu-only", action="store_true", help="run the emulator alone: what it does not have, and crashes")
    parser.add_argument("--gpu-only", action="store_true", help="run the GPU alone, for a record")
    parser.add_argument("--record", type=pathlib.Path, help="write the results of the GPU to this file")
    parser.add_argument("--trim", type=pathlib.Path, help="write some results of the GPU to this file, for a test")
    parser.add_argument("--replay", type=pathlib.Path, action="append", default=[],
                        help="take the results of the GPU from this file; needs none; may be repeated")  # fmt: skip
    parser.add_argument("--emit", type=pathlib.Path, help="write the modules to this folder, and run nothing")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    parser.add_argument("--group", type=int, default=200, help="forms in a module (default 200)")
    parser.add_argument("--jobs", type=int, default=4, help="emulator runs at a time (default 4)")
    parser.add_argument("--timeout", type=float, default=60, help="seconds that a run may take (default 60)")
    return parser.parse_args()


def groups(forms, size):
    """Forms that fit into one module: of one version and target."""
    alike = {}
    for form in forms:
        alike.setdefault((form.version, form.target), []).append(form)
    for some in alike.values():
        for at in range(0, len(some), size):
            yield some[at : at + size]


def judge(options, form, emu, gpu):
    """The row of a form."""
    row = {"form": form.name, "family": form.family}
    if emu is None:
        ran = gpu is not None and gpu.output is not None
        return row | ({"state": "ran"} if ran else {"state": "failed", "reason": gpu.reason if gpu else "not run"})
    if emu.output is None:
        return row | {"state": "unsupported" if emu.refused else "failed", "reason": emu.reason}
    if options.emu_only:
        return row | {"state": "ran"}
    if gpu is None:
        return row | {"state": "missing"}
    if gpu.output is None:
        return row | {"state": "refused" if gpu.refused else "failed", "reason": f"on the GPU: {gpu.reason}"}
    lanes = trim.lanes(form, options.trimmed)
    return row | compare(form, gpu.output, record.kept(form, emu.output, lanes, lanes.run), lanes)


def check(options, recorded, forms):
    """The rows of a group, and what the GPU gave."""
    emu = {} if options.gpu_only else run.outcomes(options, "emu", forms)
    gpu = recorded
    if gpu is None and not options.emu_only:
        # What the emulator does not have is of use in a record alone.
        keeps = options.record or options.trim
        wanted = [form for form in forms if keeps or options.gpu_only or emu[form.name].output is not None]
        gpu = run.outcomes(options, "gpu", wanted)
    return [judge(options, form, emu.get(form.name), (gpu or {}).get(form.name)) for form in forms], gpu or {}


def origin():
    """Where results of today come from."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        card = subprocess.run(query, capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        card = ""
    return {"card and driver": card, "date": datetime.date.today().isoformat()}


def show(row):
    if row["state"] in ("equal", "ran"):
        return
    text = {
        "within": lambda: f"{row['values']} values differ by up to {row['ulps']} ulps, within the bound",
        "differs": lambda: f"{row['values']} of {row['of']} values",
    }.get(row["state"], lambda: row.get("reason", ""))()
    print(f"{STATES[row['state']]}: {row['form']}: {text}", flush=True)
    for example in row.get("examples", []):
        print(f"    {example}", flush=True)


def emit(options, forms):
    for index, some in enumerate(groups(forms, options.group)):
        folder = options.emit / f"{index:03}"
        folder.mkdir(parents=True, exist_ok=True)
        Module(some).write(folder)


def main():
    options = arguments()
    forms = [form for form in all_forms() if options.filter in form.name]
    forms = [form for form in forms if not options.family or form.family in options.family]
    if not forms:
        sys.exit("no such forms")
    if options.emit:
        emit(options, forms)
        return
    recorded, options.trimmed, about = record.read(options.replay, forms) if options.replay else (None, False, origin())
    if options.trimmed and options.trim:
        sys.exit("a trimmed record has too little for another")
    rows, gpu = [], {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for some, outcomes in pool.map(lambda some: check(options, recorded, some), groups(forms, options.group)):
            for row in some:
                show(row)
            rows += some
            gpu |= outcomes
    if options.record:
        record.write(options.record, forms, gpu, about)
    if options.trim:
        record.write_trimmed(options.trim, forms, gpu, about)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    for family in FAMILIES:
        own = [row["state"] for row in rows if row["family"] == family]
        if own:
            print(f"{family:8} {len(own):5} forms: {counts(own)}")
    print(f"{'all':8} {len(rows):5} forms: {counts([row['state'] for row in rows])}")
    sys.exit(1 if any(row["state"] in BAD for row in rows) else 0)


def counts(states):
    return ", ".join(f"{states.count(state)} {words}" for state, words in STATES.items() if state in states)
