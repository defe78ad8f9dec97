"""What the installed SDK reads: its archive of development files, RECORD, its notes, and the kernel's list of GPUs."""

from __future__ import annotations

import io
import json
import lzma
import os
import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import trials.fuzz.build_info  # noqa: F401 (before what reads it)
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.pe.header import PeError
from rocwheel.core.compression import zstd
from rocwheel.sdk.rocm_sdk._devel_expansion import ensure_expanded
from rocwheel.sdk.rocm_sdk._devel_links import read_manifest, read_note
from rocwheel.sdk.rocm_sdk._devel_place import DevelError, DevelPlace
from rocwheel.sdk.rocm_sdk._dll_imports import DamagedDllError, read_imports
from rocwheel.sdk.rocm_sdk._files import DamagedFileError
from rocwheel.sdk.rocm_sdk._gpus import TOPOLOGY, DetectionError, read_topology, survey_gpus
from rocwheel.sdk.rocm_sdk._system import System
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.files import fixtures, on_disk

if TYPE_CHECKING:
    from collections.abc import Iterable


_RECORD = "rocm_sdk_devel-1.0.dist-info/RECORD"
_TOKENS = (b"ustar\x0000", b"_rocm_sdk_devel/", b"../", b"path=", b"linkpath=", b"size=", b"_rocm_sdk_core/")


def _archive(data: bytes) -> None:
    """Expand an input as the archive, and require that nothing outside of the tree is written or led to."""
    site = _make_site()
    (site / "rocm_sdk_devel/_devel.tar").write_bytes(data)
    try:
        ensure_expanded(_place(site))
    finally:
        _check_site(site)


def _packed_archive(data: bytes) -> None:
    """Expand an input as a compressed archive: by xz where it begins so, else by zstd."""
    site = _make_site()
    suffix = "xz" if data.startswith(b"\xfd7zXZ") else "zst"
    (site / f"rocm_sdk_devel/_devel.tar.{suffix}").write_bytes(data)
    try:
        ensure_expanded(_place(site))
    finally:
        _check_site(site)


def _record(data: bytes) -> None:
    """Expand a good archive where RECORD is anything."""
    site = _make_site()
    (site / "rocm_sdk_devel/_devel.tar").write_bytes(_GOOD)
    (site / _RECORD).write_bytes(data)
    ensure_expanded(_place(site))


def _make_site() -> Path:
    """Make the folders of an installed package without a tree."""
    site = on_disk(b"", "mark").parent / "site"
    shutil.rmtree(site, ignore_errors=True)
    for folder in ("rocm_sdk_devel", "_rocm_sdk_devel", "_rocm_sdk_core", str(Path(_RECORD).parent)):
        (site / folder).mkdir(parents=True)
    for name in ("rocm_sdk_devel/__init__.py", "_rocm_sdk_core/__init__.py", "_rocm_sdk_core/lib.so"):
        (site / name).write_bytes(b"")
    (site / _RECORD).with_name("METADATA").write_text("Name: rocm-sdk-devel\n")  # it is not being uninstalled
    (site / _RECORD).write_text("rocm_sdk_devel/__init__.py,,\nrocm_sdk_devel/_devel.tar,,\n")
    return site


def _place(site: Path) -> DevelPlace:
    return DevelPlace(site / "rocm_sdk_devel", site / "_rocm_sdk_devel")


def _check_site(site: Path) -> None:
    expected = {"rocm_sdk_devel", "_rocm_sdk_devel", "_rocm_sdk_core", Path(_RECORD).parent.name}
    found = {entry.name for entry in os.scandir(site)}
    require(found <= expected, f"written outside of the tree: {sorted(found - expected)}")
    require(len(list((site / "_rocm_sdk_core").iterdir())) == 2, "written into another package")
    for path in (site / "_rocm_sdk_devel").rglob("*"):
        if path.is_symlink():
            target = os.path.normpath(path.parent / path.readlink())
            require(target.startswith(f"{site}/"), f"{path.name} leads to {target}")


def _notes(data: bytes) -> None:
    path = on_disk(data, "note.json")
    for path_in_tree in (*_or_none(path), *read_manifest(path)[1]):
        require(not path_in_tree.startswith("/") and ".." not in path_in_tree.split("/"), f"path {path_in_tree!r}")


def _or_none(path: Path) -> Iterable[str]:
    try:
        return read_note(path)
    except DamagedFileError:
        return ()


def _topology(data: bytes) -> None:
    """Take an input as the override, up to its first NUL, and as the properties of a node."""
    override, _, properties = data.partition(b"\0")
    root = on_disk(b"", "mark").parent / "machine"
    node = root / TOPOLOGY.lstrip("/") / "1"
    node.mkdir(parents=True, exist_ok=True)
    (node / "properties").write_bytes(properties)
    environ = {"HSA_OVERRIDE_GFX_VERSION": override.decode(errors="replace")}
    gpus, problems = read_topology(System(root, environ, "linux"))
    require(len(gpus) + len(problems) <= 1, "one node is several")


def _dll(data: bytes) -> None:
    """Read what a DLL imports; the parser that the audit has finds the same names."""
    names = read_imports(on_disk(data, "input.dll"))
    try:
        found = read_pe(data, name="input.dll").imports
    except PeError:
        return
    theirs = [dll.name for dll in found if dll.functions]
    require(names == theirs or not "".join(theirs).isascii(), f"imports {names}, the audit has {theirs}")


class _Asked(System):
    """A machine of Windows whose programs say what they are made to say."""

    def __init__(self, said: str) -> None:
        super().__init__(environ={}, platform="win32")
        self._said = said

    def output(self, program: str) -> str | None:  # noqa: ARG002 (any program says the same)
        return self._said


def _lists(data: bytes) -> None:
    """Take an input as the file of targets that a variable names, and as what a program of Windows says of GPUs."""
    survey_gpus(_Asked(data.decode(errors="replace")))
    survey_gpus(System(environ={"ROCM_TARGET_LST": str(on_disk(data, "targets.lst"))}, platform="linux"))


def _tar(form: int) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as tar:
        for name, link in (
            ("include/a.h", ""),
            ("d" * 90 + "/" + "e" * 60, ""),
            ("lib/l.so", "../../_rocm_sdk_core/lib.so"),
        ):
            info = tarfile.TarInfo(f"_rocm_sdk_devel/{name}")
            info.size, info.linkname = (0, link) if link else (3, "")
            info.type = tarfile.SYMTYPE if link else tarfile.REGTYPE
            tar.addfile(info, io.BytesIO(b"abc"))
    return file.getvalue()[: -(-len(file.getvalue().rstrip(b"\0")) // 512) * 512 + 1024]


_GOOD = _tar(tarfile.USTAR_FORMAT)
_ROWS = b"rocm_sdk_devel/__init__.py,sha256=x,0\nrocm_sdk_devel/_devel.tar,sha256=abc,9\n_rocm_sdk_devel/old,,\n"
_MANIFEST = json.dumps({"version": "1.0", "links": [{"relpath": "lib/x.so"}, {"relpath": "./a//b"}]}).encode()
_NODE = b"10.3.0\0cpu_cores_count 0\nsimd_count 256\ngfx_target_version 90010\ndevice_id 29711\ndrm_render_minor 128\n"
_LIST = b"gfx90a\n#gfx1\ngfx1100:xnack-\n  Device Type:\t CL_DEVICE_TYPE_GPU\n  Name: gfx1030\n gcnArchName: gfx942\n"

HARNESSES = (
    Harness("sdk.archive", _archive, lambda: [_GOOD, _tar(tarfile.PAX_FORMAT)], (DevelError,), _TOKENS),
    Harness("sdk.packed_archive", _packed_archive, lambda: [lzma.compress(_GOOD), zstd.compress(_GOOD)], (DevelError,)),
    Harness("sdk.record", _record, lambda: [_ROWS], (DevelError,), (b'"', b"\r", b"_rocm_sdk_devel/")),
    Harness(
        "sdk.notes", _notes, lambda: [_MANIFEST, b'["lib/x"]', b"[" * 60000], (DamagedFileError,), (b"relpath", b"../")
    ),
    Harness(
        "sdk.gpus",
        _topology,
        lambda: [_NODE, _NODE.partition(b"\0")[1] + _NODE],
        tokens=(b"gfx_target_version ", b"99999999999999999999"),
    ),
    Harness("sdk.dlls", _dll, lambda: fixtures("pe/*.dll", largest=1 << 16), (DamagedDllError,), largest=1 << 16),
    Harness(
        "sdk.lists", _lists, lambda: [_LIST], (DetectionError,), (b"Device Type: ", b"\ngfx", b"xnack+", b"gfx000")
    ),
)
"""See `trials.fuzz.harness.Harness`."""
