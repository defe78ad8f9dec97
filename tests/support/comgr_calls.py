"""Calls of AMD's code object manager through ctypes; a program of its own, since it may need another C library.

``comgr_calls.py LIBRARY`` reads a JSON list of requests from standard input, each a function's name and its arguments,
with bytes in base 64, and prints the list of results, likewise. See ``amd_comgr.h``.
"""

from __future__ import annotations

import base64
import ctypes
import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXECUTABLE, _FATBIN, _OBJECT_BUNDLE = 0x8, 0x10, 0x14
_UNBUNDLE = 0xF


class _Handle(ctypes.Structure):
    _fields_ = (("handle", ctypes.c_uint64),)


class _CodeObjectInfo(ctypes.Structure):
    _fields_ = (("isa", ctypes.c_char_p), ("size", ctypes.c_size_t), ("offset", ctypes.c_uint64))


class ComgrCalls:
    """The few functions of libamd_comgr that HIP calls to load code."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)

    def version(self) -> list[int]:
        """Return the two numbers of the interface's version."""
        major, minor = ctypes.c_size_t(), ctypes.c_size_t()
        self._library.amd_comgr_get_version(ctypes.byref(major), ctypes.byref(minor))
        return [major.value, minor.value]

    def isa_name(self, code_object: bytes) -> str:
        """Return the ISA that the code object is for."""
        with self._data(_EXECUTABLE, code_object) as data:
            size = ctypes.c_size_t()
            self._call("amd_comgr_get_data_isa_name", data, ctypes.byref(size), None)
            name = ctypes.create_string_buffer(size.value)
            self._call("amd_comgr_get_data_isa_name", data, ctypes.byref(size), name)
            return name.value.decode()

    def kernels(self, code_object: bytes) -> int:
        """Return the number of kernels in the metadata of the code object."""
        metadata, kernels, count = _Handle(), _Handle(), ctypes.c_size_t()
        with self._data(_EXECUTABLE, code_object) as data:
            self._call("amd_comgr_get_data_metadata", data, ctypes.byref(metadata))
            self._call("amd_comgr_metadata_lookup", metadata, b"amdhsa.kernels", ctypes.byref(kernels))
            self._call("amd_comgr_get_metadata_list_size", kernels, ctypes.byref(count))
            return count.value

    def look_up(self, bundle: bytes, isa: str) -> tuple[int, int]:
        """Return offset and size of the code for an ISA in a plain bundle, as HIP asks; zeros if there is none."""
        query = _CodeObjectInfo(isa.encode(), 0, 0)
        with self._data(_FATBIN, bundle) as data:
            self._call("amd_comgr_lookup_code_object", data, ctypes.byref(query), ctypes.c_size_t(1))
            return query.offset, query.size

    def unbundle(self, bundle: bytes, isas: list[str]) -> list[bytes]:
        """Return the code for each ISA, as HIP takes it out of compressed bundles; nothing where there is none."""
        action, given, made = _Handle(), _Handle(), _Handle()
        self._call("amd_comgr_create_action_info", ctypes.byref(action))
        ids = (ctypes.c_char_p * len(isas))(*(f"hipv4-{isa}".encode() for isa in isas))
        self._call("amd_comgr_action_info_set_bundle_entry_ids", action, ids, ctypes.c_size_t(len(isas)))
        for handle in (given, made):
            self._call("amd_comgr_create_data_set", ctypes.byref(handle))
        with self._data(_OBJECT_BUNDLE, bundle) as data:
            self._call("amd_comgr_set_data_name", data, b"bundle")
            self._call("amd_comgr_data_set_add", given, data)
            self._call("amd_comgr_do_action", _UNBUNDLE, action, given, made)
            return [self._result(made, _EXECUTABLE, number) for number in range(len(isas))]

    def _result(self, data_set: _Handle, kind: int, number: int) -> bytes:
        data, size = _Handle(), ctypes.c_size_t()
        self._call("amd_comgr_action_data_get_data", data_set, kind, ctypes.c_size_t(number), ctypes.byref(data))
        self._call("amd_comgr_get_data", data, ctypes.byref(size), None)
        content = ctypes.create_string_buffer(size.value)
        self._call("amd_comgr_get_data", data, ctypes.byref(size), content)
        return content.raw[: size.value]

    @contextmanager
    def _data(self, kind: int, content: bytes) -> Iterator[_Handle]:
        data = _Handle()
        self._call("amd_comgr_create_data", kind, ctypes.byref(data))
        self._call("amd_comgr_set_data", data, ctypes.c_size_t(len(content)), content)
        yield data
        self._call("amd_comgr_release_data", data)

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            msg = f"{function} returned {status}"
            raise RuntimeError(msg)


def main() -> None:
    """Answer the requests."""
    calls = ComgrCalls(sys.argv[1])
    results = []
    for name, content, *arguments in json.load(sys.stdin):
        data = [] if content is None else [base64.b64decode(content)]
        results.append(getattr(calls, name)(*data, *arguments))
    print(json.dumps(results, default=lambda data: base64.b64encode(data).decode()))


if __name__ == "__main__":
    main()
