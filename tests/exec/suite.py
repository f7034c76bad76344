"""Launches a kernel with a race, and one without, as tests of a runner that names them as pytest does."""

import ctypes
import os
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    assert code == 0, f"{name} gave {code}"


def handle(name, *arguments):
    out = ctypes.c_void_p()
    call(name, ctypes.byref(out), *arguments)
    return out


call("cuInit", 0)
handle("cuCtxCreate_v2", 0, 0)
module = handle("cuModuleLoad", sys.argv[1].encode())
memory = ctypes.c_uint64()
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(1024))


def launch(kernel, *more):
    values = [memory, *more]
    arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    function = handle("cuModuleGetFunction", module, kernel.encode())
    call("cuLaunchKernel", function, 1, 1, 1, 64, 1, 1, 0, None, arguments, None)


def test_fill():
    launch("fill", ctypes.c_uint32(7))


def test_reverse():
    launch("reverse")


launch("fill", ctypes.c_uint32(1))
for test in (test_fill, test_reverse):
    for phase in ("setup", "call", "teardown"):
        os.environ["PYTEST_CURRENT_TEST"] = f"suite.py::{test.__name__} ({phase})"
        if phase == "call":
            test()
    del os.environ["PYTEST_CURRENT_TEST"]
launch("fill", ctypes.c_uint32(2))
