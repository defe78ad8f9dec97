"""Asks HIP to load files on a GPU: a program that needs only Python, because it also runs in other systems.

``probe.py LIBRARY WITNESS DEVICE FILE...`` prints a line of JSON for each file, with what ``witness.c``, the library
WITNESS, wrote meanwhile. Modules are given to hipModuleLoadData. Libraries are loaded, and for each bundle that they
register, hipFuncGetAttributes of a kernel makes HIP load the bundle's code. For a file that ends the process, only a
line says that it began.
"""

import ctypes
import json
import os
import sys

REFUSED = -1
"""The status of a bundle that HIP doesn't accept when it is registered."""
NO_KERNEL = -2
"""The status of a bundle without kernels, whose code nothing asks for."""


def main(library: str, witness: str, device: int, paths: "list[str]") -> None:
    """Print what HIP says of its GPUs and of each file."""
    hip, seer = ctypes.CDLL(library, ctypes.RTLD_GLOBAL), ctypes.CDLL(witness)
    count = ctypes.c_int()
    status = hip.hipInit(0) or hip.hipGetDeviceCount(ctypes.byref(count))
    tell(begun="devices", status=status, devices=count.value)
    if device >= count.value:
        return
    hip.hipSetDevice(device)
    properties = ctypes.create_string_buffer(1 << 14)
    hip.hipGetDeviceProperties(properties, device)
    name = properties.raw[max(properties.raw.find(b"gfx"), 0) :].split(b"\0")[0].decode()
    for path in paths:
        tell(begun=path)
        with open(path, "rb") as file:  # noqa: PTH123 (no import that the program can do without)
            data = file.read()
        bundles = load_library(hip, seer, path) if data[18:20] == b"\x3e\0" else [load_module(hip, data)]
        tell(file=path, gpu=name, bundles=bundles)


def load_module(hip: ctypes.CDLL, data: bytes) -> "dict[str, object]":
    """Load a module and return the status, and which code objects were loaded."""
    module, seen = ctypes.c_void_p(), len(witnessed())
    status = hip.hipModuleLoadData(ctypes.byref(module), data + bytes(4096))
    loaded = witnessed()[seen:]
    if not status:
        hip.hipModuleUnload(module)
    return {"status": status, "loaded": loaded}


def load_library(hip: ctypes.CDLL, seer: ctypes.CDLL, path: str) -> "list[dict[str, object]]":
    """Load a library and return the status, and which code objects were loaded, of each bundle that it registers."""
    bundle, accepted, kernel = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_void_p()
    facts = [ctypes.byref(fact) for fact in (bundle, accepted, kernel)]
    number = 0
    while seer.witness_registered(number, *facts):
        number += 1
    ctypes.CDLL(path)
    found: dict[int | None, dict[str, object]] = {}
    while seer.witness_registered(number, *facts):
        number += 1
        attributes, seen = ctypes.create_string_buffer(1 << 10), len(witnessed())
        if kernel.value:
            status = hip.hipFuncGetAttributes(attributes, kernel)
        else:
            status = NO_KERNEL if accepted.value else REFUSED
        result: dict[str, object] = {"status": status, "loaded": witnessed()[seen:]}
        # Relocatable device code is registered for each translation unit, and works only if each of them has its code.
        before = found.get(bundle.value, {}).get("status", NO_KERNEL)
        if before == NO_KERNEL or (before == 0 and status not in (0, NO_KERNEL)):
            found[bundle.value] = result
    return list(found.values())


def witnessed() -> "list[object]":
    """Return the lines of the witness so far."""
    path = os.environ.get("WITNESS", "")
    if not path or not os.path.exists(path):  # noqa: PTH110
        return []
    with open(path) as file:  # noqa: PTH123
        return [json.loads(line) for line in file]


def tell(**facts: object) -> None:
    """Print a line of JSON."""
    print(json.dumps(facts), flush=True)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
