"""Launches a kernel by the driver and prints, as JSON, what it took: a program for itself, so that a sanitizer can run it.

    python3 -m race_bench.native NUMBER RUNS

`events` are the kernel's times by events of the driver, `walls` those of the host around launch and wait, in seconds.
"""

import ctypes
import json
import random
import sys
import time

from .cases import CASES


class Driver:
    """The few calls that are needed."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)

    def __call__(self, name, *args):
        code = getattr(self.lib, name)(*args)
        if code != 0:
            raise SystemExit(f"{name} failed with code {code}")

    def kernel(self, path, name):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self("cuModuleLoadData", ctypes.byref(module), path.read_bytes() + b"\0")
        self("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def buffer(self, words, value):
        address = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(words * 4))
        if isinstance(value, int):
            self("cuMemsetD32_v2", address, ctypes.c_uint(value), ctypes.c_size_t(words))
        else:
            data = random.Random(value).randbytes(words * 4)
            self("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(len(data)))
        return address

    def event(self):
        event = ctypes.c_void_p()
        self("cuEventCreate", ctypes.byref(event), 0)
        return event


def main():
    case, runs = CASES[int(sys.argv[1])], int(sys.argv[2])
    driver = Driver()
    kernel = driver.kernel(case.module, case.kernel)
    values = [ctypes.c_int(arg) if isinstance(arg, int) else driver.buffer(*arg) for arg in case.args]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values))
    begin, end = driver.event(), driver.event()
    events, walls = [], []
    for _ in range(runs):
        driver("cuCtxSynchronize")
        start = time.perf_counter()
        driver("cuEventRecord", begin, None)
        driver("cuLaunchKernel", kernel, *case.grid, *case.block, 0, None, pointers, None)
        driver("cuEventRecord", end, None)
        driver("cuCtxSynchronize")
        walls.append(time.perf_counter() - start)
        took = ctypes.c_float()
        driver("cuEventElapsedTime", ctypes.byref(took), begin, end)
        events.append(took.value / 1000)
    print(json.dumps({"events": events, "walls": walls}))


if __name__ == "__main__":
    main()
