"""Results of a GPU in a file, so that the emulator can be compared again where there is none.

A whole record is an archive with an entry for each form, named by what the results depend on. A trimmed one, for a test, has
the results of few lanes, all in one entry. Both say where they come from in `about`."""

import hashlib
import json
import struct
import zipfile

from . import trim, values
from .module import Module
from .run import Outcome

ABOUT, TRIMMED = "about", "trimmed"
RAN, REFUSED = 1, 2


def key(form, trimmed):
    """Changes with whatever the results depend on."""
    kernel = Module([form]).kernel(0)
    operands = values.packed(form.sources, trim.lanes(form, trimmed).run)
    return hashlib.sha256(kernel.encode() + operands).digest()[:16]


def size(kind):
    return max(values.REGISTER[kind] // 8, 1)


def narrow(form, output):
    """The bytes of each value that its register has."""
    count = len(output) // (8 * len(form.results))
    parts = []
    for at, kind in enumerate(form.results):
        part = output[at * 8 * count : (at + 1) * 8 * count]
        parts.append(b"".join(part[i : i + size(kind)] for i in range(0, len(part), 8)))
    return b"".join(parts)


def widen(form, data):
    count = len(data) // sum(size(kind) for kind in form.results)
    parts, at = [], 0
    for kind in form.results:
        for _ in range(count):
            parts.append(data[at : at + size(kind)].ljust(8, b"\0"))
            at += size(kind)
    return b"".join(parts)


def kept(form, output, lanes, every):
    """The bytes of those lanes that are compared, of `every` lane that was run."""
    count = len(output) // (8 * len(form.results))
    wanted = [every.index(lanes.run[at]) for at in lanes.kept] if every != lanes.run else lanes.kept
    words = struct.unpack(f"<{count * len(form.results)}Q", output)
    chosen = [words[at * count + lane] for at in range(len(form.results)) for lane in wanted]
    return struct.pack(f"<{len(chosen)}Q", *chosen)


def write(path, forms, outcomes, about):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(ABOUT, json.dumps(about))
        for form in forms:
            outcome = outcomes.get(form.name)
            if outcome is not None:
                flag = RAN if outcome.output is not None else REFUSED if outcome.refused else 0
                body = outcome.reason.encode() if outcome.output is None else narrow(form, outcome.output)
                file.writestr(key(form, False).hex(), bytes([flag]) + body)


def write_trimmed(path, forms, outcomes, about):
    """Of results of all lanes, or of those that a trimmed record has."""
    parts = []
    for form in forms:
        outcome = outcomes.get(form.name)
        if outcome is not None and outcome.output is not None:
            body = narrow(form, kept(form, outcome.output, trim.lanes(form, True), trim.ALL.run))
            parts.append(key(form, True) + struct.pack("<BI", RAN, len(body)) + body)
        elif outcome is not None and outcome.refused:
            parts.append(key(form, True) + struct.pack("<BI", REFUSED, 0))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        file.writestr(ABOUT, json.dumps(about))
        file.writestr(TRIMMED, b"".join(parts))


def read(paths, forms):
    """The outcomes of those forms that are in the files, as they are now; whether they are trimmed; where they come from."""
    found, trimmed, about = {}, False, {}
    for path in paths:
        with zipfile.ZipFile(path) as file:
            names = set(file.namelist())
            about |= json.loads(file.read(ABOUT)) if ABOUT in names else {}
            if TRIMMED in names:
                trimmed = True
                entries = dict(split(file.read(TRIMMED)))
                take = entries.get
            else:
                take = lambda name: file.read(name.hex()) if name.hex() in names else None  # noqa: E731
            for form in forms:
                data = take(key(form, TRIMMED in names))
                if data is not None:
                    body = data[1:]
                    ran = data[0] == RAN
                    found[form.name] = Outcome(widen(form, body)) if ran else Outcome(None, body.decode(), data[0] == REFUSED)
    return found, trimmed, about


def split(data):
    at = 0
    while at < len(data):
        flag, length = struct.unpack_from("<BI", data, at + 16)
        yield data[at : at + 16], bytes([flag]) + data[at + 21 : at + 21 + length]
        at += 21 + length
