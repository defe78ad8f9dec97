"""Tells what frameworks loaded of ROCm, from where, and what stopped them: the last step of examples/frameworks.

``python -m scripts.framework_table TRACES --packages WHEEL...`` reads, for each probe, what it tells (``NAME.json``)
and what the dynamic loader tells under ``LD_DEBUG=libs`` (``NAME.libs``, ld.so(8)). The exit status is 1 when a library
of ROCm came from elsewhere than the packages, or when something else stopped a framework than the missing GPU or a
library that the packages don't have.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import msgspec
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Row", "Told", "absent_library", "loaded_files", "make_row", "public_libraries", "wants_gpu"]

_INITIALIZED = re.compile(r"\s*\d+:\s+calling init: (/.+)")
_IN_PACKAGE = re.compile(r"/site-packages/(_rocm_sdk_\w+)/")
_ABSENT = re.compile(r"([^\s:']+\.so[.\d]*): cannot open shared object file")
# JAX's own look into /sys, HIP's hipErrorNoDevice, and what XLA makes of it.
_NO_GPU = re.compile(
    r"No AMD GPUs were found|no ROCm-capable device|hipErrorNoDevice|No visible GPU devices", re.IGNORECASE
)
_LIBRARY = re.compile(r"_rocm_sdk_\w+/lib/([^/]+\.so(?:\.\d+)*)")


class Told(msgspec.Struct, frozen=True):
    """What a probe tells."""

    reached: tuple[str, ...]
    """The steps that went well."""
    stopped: tuple[str, ...]
    """What stopped it, all of it; empty if nothing did."""


class Row(msgspec.Struct, frozen=True):
    """How far a framework came, and which libraries of ROCm it loaded."""

    probe: str
    told: Told
    packages: dict[str, tuple[str, ...]]
    """The libraries that came from each package, by their names."""
    strays: tuple[str, ...]
    """Paths of libraries that the packages have, loaded from elsewhere."""

    absent: tuple[str, ...]
    """Libraries that the loader did not find and that the packages do not have."""
    faults: tuple[str, ...]
    """What else stopped it, but for the missing GPU."""

    @property
    def is_expected(self) -> bool:
        """Whether it came as far as it can without a GPU and with what the packages have."""
        return bool(self.told.reached or self.absent) and not self.strays and not self.faults


def loaded_files(trace: Iterable[str]) -> Iterator[str]:
    """Yield the path of each library that was loaded and initialized, from the lines of ``LD_DEBUG=libs``, each once.

    A file that the loader only tried, or gave up since it lacks another, is none of them.
    """
    seen = set()
    for line in trace:
        match = _INITIALIZED.fullmatch(line.rstrip("\n"))
        if match and match[1] not in seen:
            seen.add(match[1])
            yield match[1]


def make_row(probe: str, told: Told, trace: Iterable[str], public: frozenset[str]) -> Row:
    """Return the row of a probe; ``public`` has the names of the libraries that the packages have for others."""
    packages: dict[str, list[str]] = {}
    strays = []
    for path in loaded_files(trace):
        name = path.rpartition("/")[2]
        if match := _IN_PACKAGE.search(posixpath.normpath(path)):
            packages.setdefault(match[1], []).append(name)
        elif name in public:
            strays.append(path)
    absent = {text: library for text in told.stopped if (library := absent_library(text)) and library not in public}
    return Row(
        probe,
        told,
        packages={package: tuple(names) for package, names in packages.items()},
        strays=tuple(strays),
        absent=tuple(dict.fromkeys(absent.values())),
        faults=tuple(text for text in told.stopped if text not in absent and not wants_gpu(text)),
    )


def public_libraries(members: Iterable[str]) -> frozenset[str]:
    """Return the names of ROCm's libraries among the files of packages: those right in a ``lib``."""
    return frozenset(match[1] for member in members if (match := _LIBRARY.fullmatch(member)))


def absent_library(stopped: str) -> str | None:
    """Return the library that the loader did not find, if that stopped a framework."""
    match = _ABSENT.search(stopped)
    return match[1] if match else None


def wants_gpu(stopped: str) -> bool:
    """Return whether a framework stopped for want of a GPU."""
    return _NO_GPU.search(stopped) is not None


def _read(traces: Path, public: frozenset[str]) -> list[Row]:
    rows = []
    for path in sorted(traces.glob("*.json")):
        told = msgspec.json.decode(path.read_bytes(), type=Told)
        trace = path.with_suffix(".libs").read_text(errors="surrogateescape").splitlines()
        rows.append(make_row(path.stem, told, trace, public))
    return rows


def _print(rows: Iterable[Row]) -> None:
    table = Table("probe", "reached", "libraries of ROCm", "stopped by", show_lines=True)
    for row in rows:
        origins = [f"{package}: {', '.join(names)}" for package, names in row.packages.items()]
        origins += [f"NOT from the packages: {path}" for path in row.strays]
        table.add_row(
            row.probe, "\n".join(row.told.reached), "\n".join(origins), "\n".join(row.told.stopped) or "nothing"
        )
    Console(width=180, markup=False).print(table)


def main() -> int:
    """Print the table; return 1 if a row is not as expected, or none is there."""
    parser = ArgumentParser(prog="framework_table", description=__doc__)
    parser.add_argument("traces", type=Path)
    parser.add_argument("--packages", type=Path, nargs="+", required=True)
    arguments = parser.parse_args()
    members: list[str] = []
    for wheel in arguments.packages:
        with ZipFile(wheel) as archive:
            members += archive.namelist()
    rows = _read(arguments.traces, public_libraries(members))
    _print(rows)
    faults = [row.probe for row in rows if not row.is_expected]
    if faults or not rows:
        print("not as expected:", json.dumps(faults), file=sys.stderr)
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
