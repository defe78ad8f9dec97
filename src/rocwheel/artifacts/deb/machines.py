"""Which architecture of Debian's the machine code of a file is for: the machine number of its ELF header (gABI)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from rocwheel.binary.kind import is_elf
from rocwheel.core.errors import InputError
from rocwheel.core.messages import first_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["HEAD_SIZE", "ForeignCode", "foreign_architecture"]

HEAD_SIZE: Final = 20
"""The number of first bytes that say which machine an ELF file is for."""

_ARCHITECTURES: Final = {
    3: "i386",
    8: "mips64el",
    21: "ppc64el",
    22: "s390x",
    40: "armhf",
    62: "amd64",
    183: "arm64",
    243: "riscv64",
    258: "loong64",
}
"""The architectures of processors; GPUs and virtual machines have numbers of their own."""
_BESIDE: Final = {"amd64": "i386", "arm64": "armhf", "armel": "armhf", "x32": "amd64"}
"""What packages for an architecture hold besides: code that the same processors run."""


def foreign_architecture(head: bytes, declared: str) -> str:
    """Return the architecture of an ELF file that begins with ``head``, if packages for ``declared`` don't hold such.

    It is empty for other files, for code that is not for a processor, and where ``declared`` is not known.
    """
    if len(head) < HEAD_SIZE or not is_elf(head) or declared not in {*_ARCHITECTURES.values(), *_BESIDE}:
        return ""
    found = _ARCHITECTURES.get(int.from_bytes(head[18:20], "big" if head[5] == 2 else "little"), "")
    return "" if found in (declared, _BESIDE.get(declared)) else found


class ForeignCode:
    """The files of a package whose code is for another architecture than the package declares."""

    def __init__(self, package: Path, declared: str) -> None:
        self._package, self._declared = package, declared
        self._files: defaultdict[str, list[str]] = defaultdict(list)

    def note(self, path: str, head: bytes) -> None:
        """Look at the first bytes of a file."""
        if architecture := foreign_architecture(head, self._declared):
            self._files[architecture].append(path)

    def problems(self, remedy: str) -> list[InputError]:
        """Return an error for each such architecture."""
        lead = f"is a package for {self._declared}, but holds code for"
        return [
            InputError(self._package, f"{lead} {architecture}: {first_of(paths)}", remedy=remedy)
            for architecture, paths in sorted(self._files.items())
        ]
