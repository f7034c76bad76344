"""Results of a GPU in a file, so that the emulator can be compared again where there is none."""

import hashlib
import struct
import zipfile

from . import values
from .module import STRIDE, Module
from .run import Outcome


def key(form):
    """Changes with whatever the results depend on."""
    kernel = Module([form]).kernel(0)
    return hashlib.sha256(kernel.encode() + values.packed(form.sources)).hexdigest()[:32]


def narrow(form, output):
    """The bytes of each value that its register has."""
    parts = []
    for at, kind in enumerate(form.results):
        size = max(values.REGISTER[kind] // 8, 1)
        part = output[at * STRIDE : (at + 1) * STRIDE]
        parts.append(b"".join(part[i : i + size] for i in range(0, STRIDE, 8)))
    return b"".join(parts)


def widen(form, data):
    parts, at = [], 0
    for kind in form.results:
        size = max(values.REGISTER[kind] // 8, 1)
        for _ in range(values.LANES):
            parts.append(data[at : at + size].ljust(8, b"\0"))
            at += size
    return b"".join(parts)


def write(path, forms, outcomes):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for form in forms:
            outcome = outcomes.get(form.name)
            if outcome is not None:
                flag = b"\1" if outcome.output is not None else b"\2" if outcome.refused else b"\0"
                body = outcome.reason.encode() if outcome.output is None else narrow(form, outcome.output)
                file.writestr(key(form), flag + body)


def read(path, forms):
    """The outcomes of those forms that are in the file, as they are now."""
    found = {}
    with zipfile.ZipFile(path) as file:
        names = set(file.namelist())
        for form in forms:
            name = key(form)
            if name in names:
                data = file.read(name)
                flag, body = struct.unpack("B", data[:1])[0], data[1:]
                found[form.name] = Outcome(widen(form, body)) if flag == 1 else Outcome(None, body.decode(), flag == 2)
    return found
