"""AMD's code object manager through ctypes: what an unmodified runtime asks of bundles and code objects."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

EXECUTABLE, FATBIN = 0x8, 0x10
_CACHE = Path(__file__).parents[2] / ".cache"


class _Data(ctypes.Structure):
    _fields_ = (("handle", ctypes.c_uint64),)


class _CodeObjectInfo(ctypes.Structure):
    _fields_ = (("isa", ctypes.c_char_p), ("size", ctypes.c_size_t), ("offset", ctypes.c_uint64))


class Comgr:
    """The few functions of libamd_comgr that HIP calls to load code."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        self._library.amd_comgr_set_data.argtypes = [_Data, ctypes.c_size_t, ctypes.c_char_p]
        self._library.amd_comgr_release_data.argtypes = [_Data]
        self._library.amd_comgr_get_data_isa_name.argtypes = [_Data, ctypes.POINTER(ctypes.c_size_t), ctypes.c_char_p]
        self._library.amd_comgr_lookup_code_object.argtypes = [_Data, ctypes.c_void_p, ctypes.c_size_t]

    def isa_name(self, code_object: bytes) -> str:
        """Return the ISA that the code object is for."""
        with self._data(EXECUTABLE, code_object) as data:
            size = ctypes.c_size_t()
            self._call("amd_comgr_get_data_isa_name", data, ctypes.byref(size), None)
            name = ctypes.create_string_buffer(size.value)
            self._call("amd_comgr_get_data_isa_name", data, ctypes.byref(size), name)
            return name.value.decode()

    def look_up(self, bundle: bytes, isa: str) -> tuple[int, int]:
        """Return offset and size of the code for an ISA in a plain bundle; zeros if there is none."""
        with self._data(FATBIN, bundle) as data:
            query = _CodeObjectInfo(isa.encode(), 0, 0)
            self._call("amd_comgr_lookup_code_object", data, ctypes.byref(query), 1)
            return query.offset, query.size

    @contextmanager
    def _data(self, kind: int, content: bytes) -> Iterator[_Data]:
        data = _Data()
        self._call("amd_comgr_create_data", kind, ctypes.byref(data))
        self._call("amd_comgr_set_data", data, len(content), content)
        yield data
        self._call("amd_comgr_release_data", data)

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        assert status == 0, f"{function} returned {status}"


def load_comgr() -> Comgr:
    """Load Debian's libamd-comgr2, or skip the test."""
    found = sorted(_CACHE.glob("libamd-comgr2/usr/lib/*/libamd_comgr.so.2"))
    if not found:
        pytest.skip("no libamd_comgr; scripts/fetch_device_code_corpus.sh gets it")
    try:
        return Comgr(found[0])
    except OSError as e:
        pytest.skip(f"libamd_comgr can't be loaded ({e}); it needs Debian's libllvm15")
