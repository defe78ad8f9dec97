"""AMD's code object managers, of two releases: what an unmodified runtime asks of bundles and code objects."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.comgr_calls import ComgrCalls
from tests.support.places import CACHE as _CACHE

_CALLS = Path(__file__).with_name("comgr_calls.py")
_PYTHON = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"


class LaterComgr(msgspec.Struct, frozen=True):
    """The functions of `ComgrCalls`, called in another process, which has the C library that this comgr needs."""

    command: tuple[str, ...]
    cache: str = ""
    """The folder of its cache; it has none without one, as it must read what is there."""

    def version(self) -> list[int]:
        """Return the two numbers of the interface's version."""
        return list(self._call("version", None))

    def isa_name(self, code_object: bytes) -> str:
        """Return the ISA that the code object is for."""
        return str(self._call("isa_name", code_object))

    def kernels(self, code_object: bytes) -> int:
        """Return the number of kernels in the metadata of the code object."""
        return int(self._call("kernels", code_object))

    def look_up(self, bundle: bytes, isa: str) -> tuple[int, int]:
        """Return offset and size of the code for an ISA in a plain bundle; zeros if there is none."""
        offset, size = self._call("look_up", bundle, isa)
        return offset, size

    def unbundle(self, bundle: bytes, isas: list[str]) -> list[bytes]:
        """Return the code for each ISA in a bundle, compressed or not; nothing where there is none."""
        return [base64.b64decode(code) for code in self._call("unbundle", bundle, isas)]

    def finds(self, bundle: bytes, isas: list[str]) -> list[bool]:
        """Return whether there is code for each ISA, asked one after the other: one entry is given out once a time."""
        found = self._call_each([["unbundle", base64.b64encode(bundle).decode(), [isa]] for isa in isas])
        return [bool(code) for [code] in found]

    def _call(self, function: str, data: bytes | None, *arguments: object) -> Any:
        content = None if data is None else base64.b64encode(data).decode()
        [result] = self._call_each([[function, content, *arguments]])
        return result

    def _call_each(self, requests: list[list[object]]) -> list[Any]:
        request = json.dumps(requests)
        cache = {"AMD_COMGR_CACHE": "1", "AMD_COMGR_CACHE_DIR": self.cache} if self.cache else {"AMD_COMGR_CACHE": "0"}
        environment = {**os.environ, **cache}
        done = subprocess.run(self.command, input=request, capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return list(json.loads(done.stdout))


def load_comgr() -> ComgrCalls:
    """Return Debian 12's libamd-comgr2, for plain bundles and code objects up to version 4; or skip the test."""
    found = sorted(_CACHE.glob("libamd-comgr2/usr/lib/*/libamd_comgr.so.2"))
    if not found:
        pytest.skip("no libamd_comgr; scripts/fetch_device_code_corpus.sh gets it")
    try:
        return ComgrCalls(str(found[0]))
    except OSError as e:
        pytest.skip(f"libamd_comgr can't be loaded ({e}); it needs Debian's libllvm15")


def load_later_comgr() -> LaterComgr:
    """Return a later Debian's libamd-comgr3, which reads all; or skip the test."""
    found = sorted(_CACHE.glob("comgr/usr/lib/*/libamd_comgr.so.3"))
    if not found:
        pytest.skip("no libamd_comgr of a later Debian; scripts/fetch_device_code_corpus.sh gets it")
    folder = found[0].parent
    loader = (str(folder / "ld-linux-x86-64.so.2"), "--library-path", str(folder))
    comgr = LaterComgr((*loader, str(_PYTHON), str(_CALLS), str(found[0])))
    try:
        comgr.version()
    except (OSError, RuntimeError) as e:
        pytest.skip(f"libamd_comgr of a later Debian can't be loaded ({e})")
    return comgr
