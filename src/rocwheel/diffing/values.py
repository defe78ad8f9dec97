"""One side of a comparison: the packages that are there, what they say of themselves, and their files."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.zip.reader import ZipMember, member_head, open_content
from rocwheel.foundation.files.reading.file_range import FileRange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    from rocwheel.foundation.files.reading.file_view import Data

    Unpack: TypeAlias = Callable[[ZipMember], AbstractContextManager[FileRange]]

__all__ = ["Item", "Metadata", "Package", "Side", "Unpack"]


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a package. Sizes are in bytes; ``mode`` is all 16 bits of Unix, 0 where none is known."""

    path: str
    """Where it is installed, relative to site-packages or to the tree."""
    source: str
    """How messages name it."""
    size: int
    packed: int | None = None
    """Its size in the wheel; none where it is not packed."""
    mode: int = 0
    link: str | None = None
    """What it leads to, if it is a symlink."""
    hash: str = ""
    """What RECORD says of a member of a wheel; empty where nobody promises it."""
    content: ZipMember | FileRange | bytes | None = None

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def is_executable(self) -> bool:
        """Whether its owner may run it."""
        return bool(self.mode & 0o100)

    def head(self) -> bytes:
        """Return its first bytes, by which binaries are known."""
        if isinstance(self.content, ZipMember):
            return member_head(self.content)
        with self.view() as data:
            return bytes(data[:64])

    @contextmanager
    def view(self, unpack: Unpack = open_content) -> Iterator[Data]:
        """Yield its bytes; raise `InputError` where they can't be read or are damaged.

        ``unpack`` yields those of a member of a wheel.
        """
        if isinstance(self.content, ZipMember):
            with unpack(self.content) as unpacked, unpacked.view() as data:
                yield data
        elif isinstance(self.content, FileRange):
            with self.content.view() as data:
                yield data
        else:
            yield memoryview(self.content or b"")


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """What a package promises to those who install it, each as its metadata spells it."""

    requires: tuple[str, ...] = ()
    requires_python: str = ""
    extras: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()
    """Each as ``group: name``."""
    targets: tuple[str, ...] = ()
    """The GPU targets that it declares."""
    license: str = ""
    summary: str = ""
    tags: tuple[str, str, str] = ("", "", "")
    """Python, ABI and platform of a wheel, each maybe several with dots between."""


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """One distribution, or files that belong to none."""

    name: str
    """Normalised; empty for files that belong to no distribution."""
    version: str = ""
    source: str
    dist_info: str = ""
    metadata: Metadata = Metadata()
    items: tuple[Item, ...] = ()

    @property
    def label(self) -> str:
        """How messages name it."""
        return self.name or "files"

    @property
    def is_sdist(self) -> bool:
        """Whether it is an sdist, whose files are at other places than those that are installed."""
        return bool(self.name) and not self.dist_info

    @property
    def size(self) -> int:
        """The bytes of its files."""
        return sum(item.size for item in self.items)

    @property
    def packed(self) -> int | None:
        """The bytes of its files in the wheel; none where they are not packed."""
        sizes = [item.packed for item in self.items if item.packed is not None]
        return sum(sizes) if sizes else None


class Side(msgspec.Struct, frozen=True):
    """Everything at one path."""

    path: str
    packages: tuple[Package, ...]

    @property
    def has_distributions(self) -> bool:
        """Whether there is a distribution, rather than files alone."""
        return any(package.name for package in self.packages)

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(package.size for package in self.packages)
