"""What a call of the driver and a launch cost, as they are and under `ptxrace exec`."""

from .build import KERNELS
from .run import Run, Wrapped


def numbers(text):
    return {name: float(value) for name, value in (line.split() for line in text.splitlines())}


def measure(options, folder, built):
    """The numbers of both, printed side by side. Launches that are not checked are measured too."""
    command, why = built
    if command is None:
        print(f"overhead: {why}")
        return {}
    command = [*command, str(KERNELS)]
    runs = {"native": Run(command, folder, options.timeout)} if options.backend == "gpu" else {}
    runs["checked"] = Wrapped(options, command, folder, [])
    runs["not checked"] = Wrapped(options, command, folder, ["--max-launches", "0"])
    costs = {}
    for name, run in runs.items():
        if run.exit != 0:
            print(f"overhead: {name} ended with {run.exit}: {run.stderr.strip()[-300:]}")
        else:
            costs[name] = numbers(run.stdout)
    names = list(costs)
    print(f"{'overhead':24}" + "".join(f"{name:>14}" for name in names))
    for key in next(iter(costs.values()), {}):
        print(f"{key:24}" + "".join(f"{costs[name][key]:>14.2f}" for name in names))
    return costs
