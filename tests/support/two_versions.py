"""Two versions of one package, of which the second lacks what users of the first rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.support.bundles import bundle_of
from tests.support.libraries import Lib, build_tree
from tests.support.wheels import write_wheel

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PLANTED", "TwoVersions", "make_two_versions"]

_OLD_SOURCE = """
int kept(void) { return 1; }
int gone(void) { return 2; }
__attribute__((weak)) int weakened(void) { return 3; }
__attribute__((visibility("protected"))) int older(void) { return 4; }
int __hip_cuid_0123456789abcdef = 1;
"""
_NEW_SOURCE = """
int kept(void) { return 1; }
int fresh(void) { return 5; }
__attribute__((visibility("protected"))) int older(void) { return 4; }
int __hip_cuid_fedcba9876543210 = 1;
"""
_OLD_SCRIPT = "V_1 { global: kept; gone; weakened; __hip_cuid_*; }; V_2 { global: older; };\n"
_NEW_SCRIPT = "V_1 { global: kept; fresh; older; __hip_cuid_*; }; V_2 { };\n"

PLANTED = {
    "library-gone": [("demo/lib/libwent.so.1", "was removed (a library with the SONAME libwent.so.1)")],
    "soname-changed": [("demo/lib/libmoved.so.1", "had the SONAME libmoved.so.1, but now has libmoved.so.2")],
    "symbol-gone": [("demo/lib/libdemo.so.1", "no longer exports gone@@V_1, older@@V_2")],
    "weak-symbol-gone": [("demo/lib/libdemo.so.1", "no longer exports the weak symbols weakened@@V_1")],
    "gpu-gone": [
        ("", "no longer has code for gfx906"),
        ("demo/lib/kernels.hsaco", "no longer has code for gfx906"),
    ],
    "gpu-generic": [
        ("", "now uses code for other targets on gfx1030"),
        ("demo/lib/kernels.hsaco", "now uses code for other targets on gfx1030"),
    ],
    "module-gone": [("demo/old.py", "went")],
    "header-gone": [("demo/include/demo.h", "went")],
    "program-gone": [("demo/bin/tool", "went")],
    "file-gone": [("demo/share/table.dat", "went")],
    "mode-changed": [("demo/bin/script", "is no longer executable: its mode changed from 755 to 644")],
    "entry-point-gone": [("", "no longer has the entry point console_scripts: demo-old")],
    "extra-gone": [("", "no longer has the extra plots")],
    "python-narrowed": [("", "requires Python >=3.11, but previously required >=3.9: 3.9.0 is excluded")],
    "glibc-raised": [("", "needs glibc 2.28 on x86_64, but previously needed 2.17")],
    "requirement-added": [("", "requires typer>=0.9")],
}
"""Each rule with what it is to find: the file, and the words."""


class TwoVersions(NamedTuple):
    """The wheels of both."""

    old: Path
    new: Path


def make_two_versions(folder: Path) -> TwoVersions:
    """Build the libraries of both versions, and pack their wheels."""
    old = build_tree(
        folder / "old-tree",
        Lib("lib/libdemo.so.1", ("libz.so.1",), "$ORIGIN", source=_OLD_SOURCE, script=_OLD_SCRIPT),
        Lib("lib/libmoved.so.1"),
        Lib("lib/libwent.so.1"),
        Lib("demo.libs/libcopy-0a1b2c3d.so.1"),
    )
    new = build_tree(
        folder / "new-tree",
        Lib("lib/libdemo.so.1", ("libm.so.6",), "$ORIGIN/../lib64", source=_NEW_SOURCE, script=_NEW_SCRIPT),
        Lib("lib/libmoved.so.2"),
    )
    return TwoVersions(_old_wheel(folder, old), _new_wheel(folder, new))


def _old_wheel(folder: Path, tree: Path) -> Path:
    files = {f"demo/lib/{path.name}": path.read_bytes() for path in sorted((tree / "lib").iterdir())}
    files["demo.libs/libcopy-0a1b2c3d.so.1"] = (tree / "demo.libs/libcopy-0a1b2c3d.so.1").read_bytes()
    files |= {
        "demo/__init__.py": b"",
        "demo/old.py": b"x = 1\n",
        "demo/include/demo.h": b"int gone(void);\n",
        "demo/bin/tool": b"#!/bin/sh\n",
        "demo/bin/script": b"#!/bin/sh\n",
        "demo/share/table.dat": b"0" * 1000,
        "demo/lib/kernels.hsaco": bundle_of("gfx906", "gfx1030", "gfx90a"),
    }
    lines = ["Requires-Python: >=3.9", "Requires-Dist: numpy", "Provides-Extra: plots", "Provides-Extra: tests"]
    entry_points = b"[console_scripts]\ndemo = demo:main\ndemo-old = demo.old:main\n"
    return _pack(folder / "old", "1.0", "manylinux_2_17_x86_64", files, lines, entry_points)


def _new_wheel(folder: Path, tree: Path) -> Path:
    files = {f"demo/lib/{path.name}": path.read_bytes() for path in sorted((tree / "lib").iterdir())}
    files |= {
        "demo/__init__.py": b"",
        "demo/bin/script": b"#!/bin/sh\n",
        "demo/lib/kernels.hsaco": bundle_of("gfx10-3-generic", "gfx90a", "gfx942"),
    }
    lines = ["Requires-Python: >=3.11", "Requires-Dist: numpy", "Requires-Dist: typer>=0.9", "Provides-Extra: tests"]
    entry_points = b"[console_scripts]\ndemo = demo:main\n"
    return _pack(folder / "new", "1.1", "manylinux_2_28_x86_64", files, lines, entry_points)


def _pack(
    folder: Path, version: str, platform: str, files: dict[str, bytes], lines: list[str], entry_points: bytes
) -> Path:
    info, tag = f"demo-{version}.dist-info", f"py3-none-{platform}"
    metadata = "\n".join(["Metadata-Version: 2.4", "Name: demo", f"Version: {version}", *lines])
    wheel = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: {tag}\n"
    texts = {"METADATA": metadata.encode() + b"\n", "WHEEL": wheel.encode(), "entry_points.txt": entry_points}
    members = {**files, **{f"{info}/{name}": text for name, text in texts.items()}}
    modes = {"demo/bin/tool": 0o100755, "demo/bin/script": 0o100755 if version == "1.0" else 0o100644}
    folder.mkdir()
    return write_wheel(folder / f"demo-{version}-{tag}.whl", info, members, modes)
