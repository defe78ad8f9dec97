"""Empty libraries, linked by the system's compiler."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["INHERITED", "Stubs"]

INHERITED = "libinherited-by-stubs.so.1"
"""What `Stubs.heir` needs."""


class Stubs:
    """Empty libraries by their SONAMEs, linked once and kept in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, soname: str) -> Path:
        """Return the library with this SONAME."""
        path = self._folder / soname
        if not path.exists():
            _link(path, ["-soname", soname], [])
        return path

    def heir(self, soname: str) -> Path:
        """Return the library with this SONAME that needs `INHERITED`, and has no run path of its own to find it by."""
        path = self._folder / "heirs" / soname
        if not path.exists():
            _link(path, ["-soname", soname, "--no-as-needed"], [self.path(INHERITED)])
        return path

    def link_probe(self, path: Path, needed: Iterable[str], run_path: str, *, is_rpath: bool) -> None:
        """Link an empty library that needs others and looks for them in a run path."""
        tag = "--disable-new-dtags" if is_rpath else "--enable-new-dtags"
        options = ["-soname", "probe", tag, "--no-as-needed", *(["-rpath", run_path] if run_path else [])]
        _link(path, options, [self.path(soname) for soname in needed])


def _link(path: Path, options: Iterable[str], libraries: Iterable[Path]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    passed = [part for option in options for part in ("-Xlinker", option)]
    command = ["gcc", "-shared", "-nostdlib", *passed, "-x", "c", "-", "-x", "none", *map(str, libraries)]
    subprocess.run([*command, "-o", str(path)], check=True, capture_output=True, input=b"")
