"""Tiny shared libraries, linked by the system's compiler, to ask the real loader about."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Lib", "build_tree", "needs_compiler"]

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


class Lib(NamedTuple):
    """A library: its path in the tree, what it needs by SONAME, its run path and that one's tag, its SONAME.

    ``source`` is its C, ``script`` a version script.
    """

    path: str
    needed: tuple[str, ...] = ()
    run_path: str = ""
    is_rpath: bool = False
    soname: str | None = None
    options: tuple[str, ...] = ()
    source: str = ""
    script: str = ""


def build_tree(root: Path, *libraries: Lib) -> Path:
    """Link all libraries below ``root``; the needed ones need not exist."""
    for library in libraries:
        _link(root, library)
    return root


def _link(root: Path, library: Lib) -> None:
    target = root / library.path
    target.parent.mkdir(parents=True, exist_ok=True)
    soname = library.soname if library.soname is not None else target.name
    with_run_path = [f"-Wl,-rpath,{library.run_path}"] if library.run_path else []
    tag = "--disable-new-dtags" if library.is_rpath else "--enable-new-dtags"
    stand_ins = [_stand_in(root, name) for name in library.needed]
    command = ["gcc", "-shared", "-nostdlib", "-x", "c", "-", "-x", "none", "-o", str(target)]
    command += [f"-Wl,-soname,{soname}", f"-Wl,{tag}", "-Wl,--no-as-needed", "-Wl,--build-id", *with_run_path]
    command += [*library.options, *_version_script(root, library.script), *map(str, stand_ins)]
    subprocess.run(command, check=True, capture_output=True, input=library.source.encode())


def _version_script(root: Path, text: str) -> list[str]:
    if not text:
        return []
    path = root.parent / f"{root.name}.map"
    path.write_text(text)
    return [f"-Wl,--version-script={path}"]


def _stand_in(root: Path, name: str) -> Path:
    """Return a library to link against so that ``name`` becomes NEEDED, outside of every run path."""
    folder = root.parent / f"{root.name}-stand-ins"
    folder.mkdir(exist_ok=True)
    path = folder / name.replace("/", "_")
    if not path.exists():
        command = ["gcc", "-shared", "-nostdlib", "-x", "c", "-", f"-Wl,-soname,{name}", "-o", str(path)]
        subprocess.run(command, check=True, capture_output=True, input=b"")
    return path
