"""Tests of `rocwheel.environment.devel_paths`."""

from __future__ import annotations

import io
import json
import lzma
import re
import tarfile
import tracemalloc
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from rocwheel.core import compression
from rocwheel.core.compression import zstd
from rocwheel.core.errors import InputError
from rocwheel.environment.devel_paths import read_archive_paths, read_manifest_paths
from rocwheel.environment.read_tree import read_tree
from tests.support.bombs import tar_block

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rocwheel.environment.tree import InstalledFile


PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".xz": lzma.compress, ".zst": zstd.compress}
PATHS = ("_rocm_sdk_devel/include/a.h", f"_rocm_sdk_devel/{'d' * 120}/{'e' * 150}")


def tar(*paths: str) -> bytes:
    """Return a tar of small files, below a folder that it has, too."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        folder = tarfile.TarInfo("_rocm_sdk_devel")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for path in paths:
            info = tarfile.TarInfo(path)
            info.size = 3
            archive.addfile(info, io.BytesIO(b"abc"))
    return buffer.getvalue()


def package(folder: Path, files: dict[str, bytes], *, tag: str = "win_amd64", as_wheel: bool = True) -> Path:
    """Write a package as a wheel, or as it is installed, and return where."""
    rows = "".join(f"{name},,\n" for name in files)
    info = {
        "METADATA": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
        "WHEEL": f"Wheel-Version: 1.0\nTag: py3-none-{tag}\n".encode(),
        "RECORD": rows.encode(),
    }
    every = files | {f"demo-1.0.dist-info/{name}": text for name, text in info.items()}
    if as_wheel:
        path = folder / f"demo-1.0-py3-none-{tag}.whl"
        with ZipFile(path, "w", ZIP_DEFLATED) as archive:
            for name, content in every.items():
                archive.writestr(name, content)
        return path
    for name, content in every.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def read(path: Path, name: str) -> InstalledFile:
    return read_tree([path]).by_path[name]


@pytest.mark.parametrize("as_wheel", [True, False], ids=["wheel", "installed"])
@pytest.mark.parametrize("suffix", PACK)
def test_the_paths_in_an_archive_are_listed(tmp_path: Path, suffix: str, as_wheel: bool) -> None:
    name = f"rocm_sdk_devel/_devel.tar{suffix}"
    path = package(tmp_path, {name: PACK[suffix](tar(*PATHS))}, as_wheel=as_wheel)
    file = read(path, name)
    assert (file.devel_paths, file.problem) == (PATHS, "")


@pytest.mark.parametrize("as_wheel", [True, False], ids=["wheel", "installed"])
def test_the_manifest_lists_the_paths_of_links_to_other_packages(tmp_path: Path, as_wheel: bool) -> None:
    text = json.dumps({"links": {"bin/a.dll": "_rocm_sdk_core/bin/a.dll"}}).encode()
    path = package(tmp_path, {"rocm_sdk_devel/_links.json": text}, as_wheel=as_wheel)
    assert read(path, "rocm_sdk_devel/_links.json").devel_paths == ("bin/a.dll",)


def test_packages_for_other_systems_are_not_unpacked(tmp_path: Path) -> None:
    name = "rocm_sdk_devel/_devel.tar"
    path = package(tmp_path, {name: b"no tar"}, tag="linux_x86_64")
    assert (read(path, name).devel_paths, read(path, name).problem) == ((), "")


WHOLE = tar(*PATHS)


@pytest.mark.parametrize("as_wheel", [True, False], ids=["wheel", "installed"])
@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("_devel.tar", b"", "is damaged or truncated (the end is missing); expected a tar file"),
        ("_devel.tar", WHOLE[:2000], "is damaged or truncated (a header is damaged: truncated header)"),
        ("_devel.tar.xz", lzma.compress(WHOLE)[:-20], "is damaged or truncated (its stream is truncated)"),
        ("_devel.tar.zst", zstd.compress(WHOLE)[:-9], "is damaged or truncated ("),
        ("_devel.tar.zst", b"no zstd", "is damaged or truncated ("),
        ("_links.json", b"{", "is damaged (Input data was truncated); expected an object with 'links'"),
        ("_links.json", b'{"links": []}', "is damaged (Expected `object`, got `array` - at `$.links`)"),
    ],
)
def test_damage_is_reported_as_a_problem_of_the_file(
    tmp_path: Path, name: str, content: bytes, found: str, as_wheel: bool
) -> None:
    path = package(tmp_path, {f"rocm_sdk_devel/{name}": content}, as_wheel=as_wheel)
    file = read(path, f"rocm_sdk_devel/{name}")
    assert (file.devel_paths, file.problem.startswith(found)) == ((), True), file.problem


def test_an_archive_with_an_implausible_compression_ratio_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_TRUSTED", 4096)
    content = lzma.compress(WHOLE + bytes(64 << 20))
    with pytest.raises(
        InputError,
        match=r"unpacks to more than 4096 bytes; expected at most 1 GiB, or 200 times its packed size\. Don't",
    ):
        read_archive_paths("_devel.tar.xz", [content], 10)


def test_a_large_archive_may_have_a_compression_ratio_of_100(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_TRUSTED", 4096)
    content = lzma.compress(WHOLE + bytes(100 * len(lzma.compress(WHOLE))))
    assert read_archive_paths("_devel.tar.xz", [content], len(content)) == PATHS


def test_the_unpacked_size_of_an_archive_is_limited_by_its_size_in_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an archive of many equal streams, each of which packs a hundredfold, which deflate packs once more."""
    monkeypatch.setattr(compression, "_TRUSTED", 4096)
    content = lzma.compress(tar_block(b"0", name="_rocm_sdk_devel/a", size=4_000_000)) + 400 * lzma.compress(
        bytes(10_000)
    )
    assert len(content) * 200 > 4_000_000
    path = package(tmp_path, {"rocm_sdk_devel/_devel.tar.xz": content})
    problem = read(path, "rocm_sdk_devel/_devel.tar.xz").problem
    assert re.fullmatch(
        r"unpacks to more than \d{5,6} bytes; expected at most 1 GiB, or 200 times its packed size", problem
    )


def test_a_wheel_with_several_archives_is_refused(tmp_path: Path) -> None:
    path = package(tmp_path, {f"{module}/_devel.tar.xz": lzma.compress(WHOLE) for module in ("a", "b")})
    with pytest.raises(InputError) as caught:
        read_tree([path])
    assert str(caught.value) == (
        f"{path}: has 2 archives of development files, such as 'a/_devel.tar.xz'; expected only one. Build or "
        "download it again."
    )


def test_an_archive_is_not_loaded_into_memory() -> None:
    header = tar("_rocm_sdk_devel/a")
    start, block = header[:1024], bytes(1 << 20)
    size = tarfile.TarInfo("_rocm_sdk_devel/big")
    size.size = 256 << 20
    pieces = iter([start, b"abc".ljust(512, b"\0"), size.tobuf(), *[block] * 256, bytes(1024)])
    tracemalloc.start()
    assert read_archive_paths("_devel.tar", pieces, 1) == ("_rocm_sdk_devel/a", "_rocm_sdk_devel/big")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_a_manifest_that_is_not_text_is_refused() -> None:
    with pytest.raises(InputError, match="is damaged"):
        read_manifest_paths("_links.json", b"\xff")
