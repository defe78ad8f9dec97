"""The worst inputs: small files that make commands do much work, each in sizes that grow by twos.

`trials.benchmarks.worst` measures them.
"""

from __future__ import annotations

import struct
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.wheels import make_wheel, pack_members, write_wheel
from trials.benchmarks.cases.case import rocwheel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from trials.benchmarks.cases.case import Words

__all__ = ["CASES", "Worst", "make_library"]

_TAG = "py3-none-manylinux_2_17_x86_64"
_INFO = "worst-1.0.dist-info"
_NAME = "worst-1.0-py3-none-any.whl"
_WHEEL = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_METADATA = b"Metadata-Version: 2.4\nName: worst\nVersion: 1.0\n"


@dataclass(frozen=True, slots=True)
class Worst:
    """A kind of input, and a command that reads it."""

    command: str
    what: str
    """The input."""
    sizes: Sequence[int]
    """The first is what a command takes with hardly anything."""
    make: Callable[[Path, int], None]
    """Makes the input of a size in an empty folder."""
    words: Callable[[Path, Path], Words]
    """The command line, for the folder of an input and one to write into."""


def make_library(soname: str, needed: Sequence[str] = (), run_path: str = "", *, tag: int = 29) -> bytes:
    """Return a shared library without code: a dynamic section, and nothing else.

    ``tag`` is that of the run path: 15 for RPATH, 29 for RUNPATH.
    """
    strings, offsets = bytearray(b"\0"), []
    for text in (*needed, soname, *([run_path] if run_path else [])):
        offsets.append(len(strings))
        strings += text.encode() + b"\0"
    entries = [(1, offset) for offset in offsets[: len(needed)]] + [(14, offsets[len(needed)])]
    entries += [(tag, offsets[-1])] if run_path else []
    symbols = 64 + 3 * 56
    hashes, dynamic = symbols + 24, symbols + 40
    start = dynamic + 16 * (len(entries) + 6)
    entries += [(4, hashes), (5, start), (6, symbols), (10, len(strings)), (11, 24), (0, 0)]
    table = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    segments = [(1, 6, 0, start + len(strings), 0x1000), (2, 6, dynamic, len(table), 8), (0x6474E551, 6, 0, 0, 16)]
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, 3, 62, 1, 0, 64, 0, 0, 64, 56, len(segments), 64, 0, 0)
    program = b"".join(
        struct.pack("<IIQQQQQQ", kind, flags, at, at, at, size, size, alignment)
        for kind, flags, at, size, alignment in segments
    )
    return header + program + bytes(24) + struct.pack("<IIII", 1, 1, 0, 0) + table + bytes(strings)


def _make_record(folder: Path, size: int) -> None:
    """Write a wheel whose RECORD has ``size`` KiB of rows that all look alike."""
    row = b"worst/a.py,sha256=A,1\n"
    record = row * ((size << 10) // len(row))
    pack_members(folder / _NAME, {f"{_INFO}/METADATA": _METADATA, f"{_INFO}/WHEEL": _WHEEL, f"{_INFO}/RECORD": record})


def _with_metadata(folder: Path, lines: str) -> None:
    members = {"worst.py": b"", f"{_INFO}/METADATA": _METADATA + lines.encode() + b"\n", f"{_INFO}/WHEEL": _WHEEL}
    write_wheel(folder / _NAME, _INFO, members)


def _make_requirements(folder: Path, size: int) -> None:
    lines = (f"Requires-Dist: a{number}; extra == 'x' and python_version < '3'\n" for number in range(size))
    _with_metadata(folder, "".join(lines))


def _make_extras(folder: Path, size: int) -> None:
    """Write a wheel with extras, and with as many requirements that none of them brings."""
    lines = (f"Provides-Extra: x{number}\nRequires-Dist: worst; extra == 'y{number}'\n" for number in range(size))
    _with_metadata(folder, "".join(lines))


def _make_chain(folder: Path, size: int) -> None:
    """Write a wheel with libraries; each needs the next one, and one that no package has."""
    _make_libraries(
        folder,
        [
            ([f"lib{number + 1}.so", f"libgone{number}.so"], f"$ORIGIN:/opt/vendor{number}/lib")
            for number in range(size)
        ],
    )


def _make_square(folder: Path, size: int) -> None:
    """Write a wheel with a chain of libraries, each with as many NEEDED names, and entries in its RPATH."""
    needed = [f"libneeded{number}.so" for number in range(size)]
    entries = ":".join(f"$ORIGIN/f{number}" for number in range(size))
    _make_libraries(folder, [([f"lib{number + 1}.so", *needed], f"$ORIGIN:{entries}") for number in range(size)])


def _make_needed(folder: Path, size: int) -> None:
    """Write a wheel with a library that needs others, which it searches for in as many folders."""
    needed = [f"libneeded{number}.so" for number in range(size)]
    _make_libraries(folder, [(needed, ":".join(f"$ORIGIN/f{number}" for number in range(size)))])


def _make_libraries(folder: Path, contents: Sequence[tuple[list[str], str]]) -> None:
    files: dict[str, Path | bytes] = {
        f"worst/lib{number}.so": make_library(f"lib{number}.so", needed, run_path, tag=15)
        for number, (needed, run_path) in enumerate(contents)
    }
    make_wheel(folder, "worst", files, tag=_TAG)


def _make_archive(folder: Path, size: int) -> None:
    """Write a wheel with a static library of empty members."""
    member = f"{'a.o/':<16}{0:<12}{0:<6}{0:<6}{'644':<8}{0:<10}`\n".encode()
    make_wheel(folder, "worst", {"worst/libworst.a": b"!<arch>\n" + member * size}, tag=_TAG)


def _make_members(folder: Path, size: int) -> None:
    make_wheel(folder, "worst", {f"worst/f{number}": b"" for number in range(size)}, tag="py3-none-any")


def _make_files(folder: Path, size: int) -> None:
    below = folder / "tree"
    below.mkdir()
    (below / "libx.so").write_bytes(make_library("libx.so"))
    for number in range(size):
        (below / f"f{number}.py").write_bytes(b"import os\n")


def _make_projects(folder: Path, size: int) -> None:
    for number in range(size):
        make_wheel(folder / "dist", f"p{number:05d}", {}, tag="py3-none-any", is_purelib=True)


def _make_versions(folder: Path, size: int) -> None:
    """Write an index of a project's versions, and of a project with a requirement for each of them."""
    for number in range(size):
        make_wheel(folder / "dist", "part", {}, version=f"1.{number}", tag="py3-none-any", is_purelib=True)
    requires = tuple(f"part>=1.{number}" for number in range(size))
    make_wheel(folder / "dist", "worst", {}, requires=requires, tag="py3-none-any", is_purelib=True)
    subprocess.run(rocwheel("index", folder / "dist", "-o", folder / "simple"), check=True)


def _audit(folder: Path, _: Path) -> Words:
    return rocwheel("audit", next(folder.glob("*.whl"), folder / "tree"))


def _repair(folder: Path, out: Path) -> Words:
    return rocwheel("repair", next(folder.glob("*.whl")), "-o", out / "repaired")


def _report(folder: Path, out: Path) -> Words:
    return rocwheel("report", next(folder.glob("*.whl")), "-o", out / "report.html")


def _index(folder: Path, _: Path) -> Words:
    return rocwheel("index", folder / "dist")


def _mirror(folder: Path, out: Path) -> Words:
    url = (folder / "simple").as_uri()
    return rocwheel("index", "mirror", url, "-o", out / "mirror", "--project", "worst", "--with-requirements")


CASES = (
    Worst("audit", "KiB of RECORD in a wheel", (1, 500, 1_000, 2_000, 4_000), _make_record, _audit),
    Worst("audit", "requirements in METADATA", (1, 1_000, 2_000, 4_000, 8_000), _make_requirements, _audit),
    Worst("audit", "extras, and requirements", (1, 500, 1_000, 2_000, 4_000), _make_extras, _audit),
    Worst("audit", "libraries in a chain", (1, 50, 100, 200, 400), _make_chain, _audit),
    Worst("repair", "libraries in a chain", (1, 50, 100, 200, 400), _make_chain, _repair),
    Worst("audit", "NEEDED names, and run path entries", (1, 100, 200, 400, 800), _make_needed, _audit),
    Worst("repair", "libraries, NEEDED names, and RPATHs", (1, 5, 10, 20, 40), _make_square, _repair),
    Worst("report", "members in a static library", (1, 16_000, 32_000, 64_000, 128_000), _make_archive, _report),
    Worst("audit", "files in a wheel", (1, 700, 1_400, 2_800, 5_600), _make_members, _audit),
    Worst("audit", "files in a folder", (1, 500, 1_000, 2_000, 4_000), _make_files, _audit),
    Worst("index", "wheels", (1, 25, 50, 100, 200), _make_projects, _index),
    Worst("index mirror", "versions, and requirements", (1, 25, 50, 100, 200), _make_versions, _mirror),
)
"""The kinds of input, in the order of the table."""
