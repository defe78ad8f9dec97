"""Commands on device code: libraries and bundles cut from Debian's librocsparse0, of so many MB."""

from __future__ import annotations

import subprocess
from functools import cache
from typing import TYPE_CHECKING

from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.binary.bundles.plain import BundlePart, write_offload_bundle
from rocwheel.core.compression import zstd
from rocwheel.core.reading import FileRange, join_data, load
from tests.support.fat_libraries import build_fat_library
from trials.benchmarks.cases.case import Case, floor, rocwheel, tool
from trials.benchmarks.device_code import fetched_library

if TYPE_CHECKING:
    from pathlib import Path

    from trials.benchmarks.cases.case import Words

__all__ = ["CASES"]

_MB = 1_000_000
_SIZES = (1, 50, 100, 200, 400)
_BUNDLE_SIZES = (1, 25, 50, 100, 200)
_TARGETS = ("gfx1030", "gfx803", "gfx900:xnack-", "gfx906:xnack-", "gfx908:xnack-", "gfx90a:xnack+", "gfx90a:xnack-")
_ENTRY = "hipv4-amdgcn-amd-amdhsa--"
_HOST = "host-x86_64-unknown-linux--"
_BUNDLER = "clang-offload-bundler-19"
_PIECE = 2 << 20
_IDS = [f"{_ENTRY}{target}" for target in _TARGETS]


@cache
def _bundles() -> tuple[bytes, ...]:
    library = fetched_library()
    with FileRange.whole(library).view() as data:
        code = read_device_code(data, name=str(library))
        assert code is not None
        found = sorted(code.iter_bundles(data), key=lambda bundle: bundle.size)
        return tuple(bytes(load(code.view(data)[bundle.start : bundle.stop])) for bundle in found[:60])


def _make_library(folder: Path, size: int) -> None:
    """Link a library with bundles until it has the size, over and over from the smallest."""
    chosen: list[bytes] = []
    while (total := sum(map(len, chosen))) < size * _MB:
        bundle = _bundles()[len(chosen) % len(_bundles())]
        if chosen and total + len(bundle) > 1.05 * size * _MB:
            break
        chosen.append(bundle)
    build_fat_library(folder / "libcut.so", chosen)


def _make_split(folder: Path, size: int) -> None:
    """Split a library, and compress its pieces for the floor."""
    _make_library(folder, size)
    subprocess.run(rocwheel("device", "split", folder / "libcut.so", "-d", folder / "split"), check=True)
    (folder / "pieces").mkdir()
    data = (folder / "libcut.so").read_bytes()
    for number, start in enumerate(range(0, len(data), _PIECE)):
        (folder / f"pieces/{number:05d}").write_bytes(zstd.compress(data[start : start + _PIECE], 3))


def _make_bundle(folder: Path, size: int) -> None:
    """Write one bundle for seven targets, that the bundler of LLVM knows."""
    joined = b"".join(_bundles())[: size * _MB].ljust(size * _MB, b"x")
    each = len(joined) // len(_IDS)
    parts = [BundlePart(name, (memoryview(joined[at * each :][:each]),)) for at, name in enumerate(_IDS)]
    (folder / "bundle.hipfb").write_bytes(join_data(write_offload_bundle([BundlePart(_HOST), *parts])))
    for number in range(len(_IDS)):
        (folder / f"code-{number}").write_bytes(joined[number * each :][:each])


def _join(folder: Path, out: Path) -> Words:
    devices = sorted(path for path in (folder / "split").iterdir() if path.name != "host")
    return rocwheel("device", "join", folder / "split/host/libcut.so", *devices, "-d", out / "fat")


def _unbundle(folder: Path, out: Path) -> Words:
    read = (_BUNDLER, "--type=o", f"--input={folder}/bundle.hipfb", "--unbundle", f"--targets={','.join(_IDS)}")
    return (*read, *(f"--output={out}/part-{number}" for number in range(len(_IDS))))


def _bundle(folder: Path, out: Path) -> Words:
    write = (_BUNDLER, "--type=o", "--bundle-align=4096", "--compress", f"--targets={','.join([_HOST, *_IDS])}")
    code = (f"--input={folder}/code-{number}" for number in range(len(_IDS)))
    return (*write, "--input=/dev/null", *code, f"--output={out}/made.ccob")


def _on_library(name: str, *words: str, to: str) -> Case:
    """Return the case of a command that writes a library anew, beside compressing its pieces."""
    option = "-o" if "." in to else "-d"
    return Case(
        f"device {name}", "MB of device code", _SIZES, _make_library,
        lambda folder, out: rocwheel("device", name.partition(" ")[0], *words, folder / "libcut.so", option, out / to),
        lambda folder, out: floor("compress", folder / "libcut.so", out),
    )  # fmt: skip


CASES = (
    _on_library("split", to="split"),
    Case(
        "device join", "MB of device code", _SIZES, _make_split, _join,
        lambda folder, out: floor("decompress", folder / "pieces", out),
    ),
    _on_library("compress", to="small.so"),
    _on_library("retarget --compress", "gfx1030=gfx1031", "--compress", to="more.so"),
    _on_library("prune --compress", "--targets", "gfx1030", "--compress", to="less.so"),
    Case(
        "device extract, of a bundle", "MB in one bundle", _BUNDLE_SIZES, _make_bundle,
        lambda folder, out: rocwheel("device", "extract", folder / "bundle.hipfb", "-d", out / "code"),
        lambda folder, out: floor("write", folder / "bundle.hipfb", out), {f"{_BUNDLER} --unbundle": _unbundle},
    ),
    Case(
        "device compress, of a bundle", "MB in one bundle", _BUNDLE_SIZES, _make_bundle,
        lambda folder, out: rocwheel("device", "compress", folder / "bundle.hipfb", "-o", out / "made.ccob"),
        lambda folder, out: floor("compress", folder / "bundle.hipfb", out),
        {f"{_BUNDLER} --compress, of code in files": _bundle,
         "zstd -3 -T0": lambda folder, out: tool(
             "zstd", "-3", "-T0", "-q", folder / "bundle.hipfb", "-o", out / "made.zst")},
    ),
)  # fmt: skip
"""Splitting and all that follows."""
