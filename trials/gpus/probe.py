"""Asks HIP to load files on each GPU: a program that needs only Python, because it also runs in other systems.

``probe.py LIBRARY FILE...`` prints a line of JSON for each GPU and each file: the number that hipModuleLoadData
returned, and what ``witness.c`` wrote meanwhile. For a file that ends the process, only a line says that it began.
"""

import ctypes
import json
import os
import sys


def main(library: str, paths: "list[str]") -> None:
    """Print what HIP says of its GPUs and of each file."""
    hip = ctypes.CDLL(library)
    count = ctypes.c_int()
    status = hip.hipInit(0) or hip.hipGetDeviceCount(ctypes.byref(count))
    tell(begun="devices", status=status, devices=count.value)
    for device in range(count.value):
        hip.hipSetDevice(device)
        properties = ctypes.create_string_buffer(1 << 14)
        hip.hipGetDeviceProperties(properties, device)
        name = properties.raw[max(properties.raw.find(b"gfx"), 0) :].split(b"\0")[0].decode()
        for path in paths:
            tell(begun=path, device=device)
            with open(path, "rb") as file:  # noqa: PTH123 (no import that the program can do without)
                data = file.read() + bytes(4096)
            module, seen = ctypes.c_void_p(), len(witnessed())
            status = hip.hipModuleLoadData(ctypes.byref(module), data)
            tell(file=path, device=device, gpu=name, status=status, loaded=witnessed()[seen:])
            if not status:
                hip.hipModuleUnload(module)


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


main(sys.argv[1], sys.argv[2:])
