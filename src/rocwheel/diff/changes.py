"""Represents the differences between two sides as plain values, as in JSON.

Sizes are in bytes, or `None` for a missing side.
"""

from __future__ import annotations

import enum

import msgspec


class Status(str, enum.Enum):
    """The change of a file or a package."""

    WENT = "went"
    CHANGED = "changed"
    CAME = "came"
    SAME = "same"


class FieldChange(msgspec.Struct, frozen=True):
    """The values that were removed from a field and added to it. A single-valued field has one value for each side."""

    field: str
    went: tuple[str, ...] = ()
    came: tuple[str, ...] = ()


class LibraryChange(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between two states of a binary. For a removed or added binary, the other state is empty."""

    is_library: bool = False
    """Whether the file is or was a shared library for the host."""
    old_soname: str = ""
    new_soname: str = ""
    fields: tuple[FieldChange, ...] = ()
    """The changed fields: ``SONAME``, ``NEEDED``, ``RUNPATH``, and ``RPATH``."""
    symbols_went: tuple[str, ...] = ()
    """Symbols that references can no longer find, as ``name@@version`` if they have a version."""
    weak_symbols_went: tuple[str, ...] = ()
    symbols_came: int = 0
    targets_went: tuple[str, ...] = ()
    """GPU targets that no code in the new state serves, whether exact or generic."""
    targets_replaced: tuple[str, ...] = ()
    """GPU targets whose exact code was removed, but that other code serves."""
    targets_came: tuple[str, ...] = ()


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A removed, added, or changed file. One of its two paths is empty unless the file exists on both sides."""

    status: Status
    old_path: str = ""
    new_path: str = ""
    old_size: int | None = None
    new_size: int | None = None
    old_packed: int | None = None
    new_packed: int | None = None
    old_mode: int | None = None
    new_mode: int | None = None
    """The permission bits, or `None` if unknown."""
    old_link: str | None = None
    new_link: str | None = None
    has_other_content: bool = False
    library: LibraryChange | None = None
    moved_to: str = ""
    """The package that now contains a removed file."""

    @property
    def path(self) -> str:
        """The file's path, or its old path if it has two paths."""
        return self.old_path or self.new_path

    @property
    def growth(self) -> int:
        """The increase in the file's size in bytes."""
        return (self.new_size or 0) - (self.old_size or 0)


class KernelLibraryChange(msgspec.Struct, frozen=True):
    """A kernel library, with one or more files for each GPU target, that lost all files for some targets."""

    library: str
    """The folder, with an asterisk in place of the target in its name."""
    targets_went: tuple[str, ...]
    """GPU targets that no file in the library serves anymore, in any package."""


class PackageChange(msgspec.Struct, frozen=True, kw_only=True):
    """A package and its differences."""

    status: Status
    name: str
    """The package's name. Empty for files without a distribution."""
    new_name: str = ""
    """The new package's name, if a single package replaces a package with another name."""
    tags: str = ""
    """The Python, ABI, and platform tags, if several wheels with the same name are compared."""
    old_platforms: tuple[str, ...] = ()
    new_platforms: tuple[str, ...] = ()
    """The platform tags of the new wheel."""
    new_pythons: tuple[str, ...] = ()
    new_abis: tuple[str, ...] = ()
    """All Python and ABI tags of the new wheel."""
    old_requires: tuple[str, ...] = ()
    """All requirements of the old package. In these requirements, ``VERSION`` replaces the package's own version."""
    old_version: str = ""
    new_version: str = ""
    old_size: int = 0
    new_size: int = 0
    old_packed: int | None = None
    new_packed: int | None = None
    fields: tuple[FieldChange, ...] = ()
    """The differences in the metadata."""
    files: tuple[FileChange, ...] = ()
    targets_went: tuple[str, ...] = ()
    """GPU targets that no file in the package serves anymore."""
    targets_replaced: tuple[str, ...] = ()
    targets_moved: tuple[str, ...] = ()
    """GPU targets whose code is now in another package."""
    targets_came: tuple[str, ...] = ()
    kernel_libraries: tuple[KernelLibraryChange, ...] = ()
    """The libraries that lost a GPU.

    If other packages contain parts of a library, only losses in all of them are included.
    """

    @property
    def label(self) -> str:
        """The package's name in messages."""
        return f"{self.name or 'files'} {self.tags}".rstrip()


class SideFacts(msgspec.Struct, frozen=True):
    """The totals for one side."""

    path: str
    packages: int
    files: int
    size: int
    packed: int | None


class Comparison(msgspec.Struct, frozen=True):
    """All differences, including packages without a difference."""

    old: SideFacts
    new: SideFacts
    packages: tuple[PackageChange, ...]
    as_files: bool = False
    """Whether only files were compared, because one side has no distributions."""
