"""What the tree of a set of packages looks like, and archives to expand in its place."""

from __future__ import annotations

import io
import os
import tarfile
from typing import TYPE_CHECKING

from tests.sdk.installed import FROM_INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sdk.installed import Installed

__all__ = ["KILLER", "REINSTALL", "TREE", "describe", "member", "replace_archive"]

KILLER = """
import os, signal, sys
from rocm_sdk._devel import get_devel_root
import rocm_sdk._devel_expansion, tarfile, lzma
steps = int(sys.argv[1])
def count(event, arguments):
    global steps
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "fcntl.flock"):
        steps -= 1
        if steps < 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
get_devel_root()
"""
"""A program that uses the development tree, and dies before a step whose number it is given."""

REINSTALL = f'pip install "rocm[devel]==7.2.0" --force-reinstall {FROM_INDEX}'
TREE = {
    "bin/amdclang++": "-> ../lib/llvm/bin/clang",
    "bin/hipcc": "hard link",
    "include/hip/hip, runtime.h": "file",
    "lib/cmake/hip/hip-config.cmake": "file",
    "lib/libamdhip64.so": "-> libamdhip64.so.6",
    "lib/libamdhip64.so.6": "-> ../../_rocm_sdk_core/lib/libamdhip64.so.6",
    "lib/libhipsparse.so": "-> libhipsparse.so.1",
    "lib/libhipsparse.so.1": "-> ../../_rocm_sdk_libraries/lib/libhipsparse.so.1",
    "lib/llvm/bin/clang": "hard link",
    "lib/note.txt": "file",
    "libexec/tool": "program",
    "llvm": "-> lib/llvm",
    "share/a,b.txt": "-> ../../_rocm_sdk_core/share/a,b.txt",
}


def describe(root: Path) -> dict[str, str]:
    """Return what each path of a tree is, without what the expansion adds for itself."""
    own = ("__init__.py", ".expanded.json")
    paths = [path for path in root.rglob("*") if path.is_symlink() or not path.is_dir()]
    names = {path.relative_to(root).as_posix(): path for path in paths if path.name not in own}
    return {name: describe_one(path) for name, path in sorted(names.items()) if not name.startswith(".device_links")}


def describe_one(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    if path.stat().st_nlink > 1:
        return "hard link"
    return "program" if os.access(path, os.X_OK) else "file"


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def replace_archive(environment: Installed, *members: tarfile.TarInfo) -> None:
    with tarfile.open(environment.site / "rocm_sdk_devel/_devel.tar", "w") as archive:
        for info in members:
            archive.addfile(info, io.BytesIO())
