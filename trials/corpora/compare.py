"""One file as several tools read it: where they differ."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rocwheel.core.errors import InputError
from trials.corpora import elf_readers, pe_readers
from trials.corpora.row import Difference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["TOOLS", "compare", "llvm_readobj", "show"]

_LONGEST = 200
_SHOWN = 3
_NEWEST, _OLDEST = 40, 15


def llvm_readobj() -> str:
    """Return the newest llvm-readobj of this machine; raises `FileNotFoundError` where there is none."""
    found = (name for version in range(_NEWEST, _OLDEST - 1, -1) if shutil.which(name := f"llvm-readobj-{version}"))
    tool = next(found, None)
    if tool is None:
        msg = "no llvm-readobj: scripts/install-debian-packages.sh installs one"
        raise FileNotFoundError(msg)
    return tool


def _by_llvm(module: Any, path: Path) -> dict[str, Any]:
    return dict(module.by_llvm(path, llvm_readobj()))


TOOLS: Final[dict[str, dict[str, Callable[[Path], dict[str, Any]]]]] = {
    "pe": {
        "pefile": pe_readers.by_pefile,
        "LIEF": pe_readers.by_lief,
        "llvm-readobj": partial(_by_llvm, pe_readers),
    },
    "elf": {
        "pyelftools": elf_readers.by_pyelftools,
        "readelf": elf_readers.by_readelf,
        "llvm-readobj": partial(_by_llvm, elf_readers),
    },
}
"""For each format the tools that read it, with functions that return facts."""
_OURS: Final[dict[str, Callable[[Path], dict[str, Any]]]] = {
    "pe": pe_readers.by_rocwheel,
    "elf": elf_readers.by_rocwheel,
}


def compare(kind: str, path: Path, label: str) -> list[Difference]:
    """Return where the tools read a file otherwise than rocwheel; ``label`` is what differences call it."""
    try:
        ours = _OURS[kind](path)
    except InputError as e:
        return [Difference(kind, label, "rocwheel", "refused", str(e).replace(str(path), "FILE")[:_LONGEST])]
    return [one for tool, read in TOOLS[kind].items() for one in _differing(kind, label, tool, ours, read, path)]


def _differing(
    kind: str, label: str, tool: str, ours: dict[str, Any], read: Callable[[Path], dict[str, Any]], path: Path
) -> Iterator[Difference]:
    try:
        theirs = read(path)
    except Exception as e:
        said = getattr(e, "stderr", None) or str(e)
        text = said.decode(errors="replace") if isinstance(said, bytes) else said
        yield Difference(kind, label, tool, "refused", text.replace(str(path), "FILE").strip()[-_LONGEST:])
        return
    for fact, value in theirs.items():
        if ours[fact] != value:
            yield Difference(kind, label, tool, fact, show(ours[fact], value))


def show(ours: Any, theirs: Any) -> str:
    """Return how two answers differ, in a line."""
    if isinstance(ours, list | set) and isinstance(theirs, list | set):
        first, second = ({str(one) for one in answer} for answer in (ours, theirs))
        only, other = sorted(first - second)[:_SHOWN], sorted(second - first)[:_SHOWN]
        text = f"{len(ours)} and {len(theirs)}; only ours: {only}; only theirs: {other}"
    else:
        text = f"{ours!r} and {theirs!r}"
    return text[: 2 * _LONGEST]
