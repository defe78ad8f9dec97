"""What differs between two sides: plain values, as JSON has them. Sizes are in bytes; none where a side has none."""

from __future__ import annotations

import enum

import msgspec


class Status(str, enum.Enum):
    """What became of a file or a package."""

    WENT = "went"
    CHANGED = "changed"
    CAME = "came"
    SAME = "same"


class FieldChange(msgspec.Struct, frozen=True):
    """What went from a field, and what came to it; a field of one value has that of each side."""

    field: str
    went: tuple[str, ...] = ()
    came: tuple[str, ...] = ()


class LibraryChange(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two states of a binary; of one that went or came, the other state is empty."""

    is_library: bool = False
    """Whether it is, or was, a shared library for the host."""
    old_soname: str = ""
    new_soname: str = ""
    fields: tuple[FieldChange, ...] = ()
    """Of ``SONAME``, ``NEEDED``, ``RUNPATH`` and ``RPATH`` those that differ."""
    symbols_went: tuple[str, ...] = ()
    """Symbols that no reference finds any more, ``name@@version`` where they have one."""
    weak_symbols_went: tuple[str, ...] = ()
    symbols_came: int = 0
    targets_went: tuple[str, ...] = ()
    """GPU targets that none of the new code serves, neither exact nor generic."""
    targets_replaced: tuple[str, ...] = ()
    """GPU targets without code of their own any more, which other code serves."""
    targets_came: tuple[str, ...] = ()


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file that went, came or changed; one of two paths is empty unless both sides have it."""

    status: Status
    old_path: str = ""
    new_path: str = ""
    old_size: int | None = None
    new_size: int | None = None
    old_packed: int | None = None
    new_packed: int | None = None
    old_mode: int | None = None
    new_mode: int | None = None
    """Permission bits; none where they are not known."""
    old_link: str | None = None
    new_link: str | None = None
    has_other_content: bool = False
    library: LibraryChange | None = None
    moved_to: str = ""
    """The package that has a file that went, now."""

    @property
    def path(self) -> str:
        """Its path, the old one if there are two."""
        return self.old_path or self.new_path

    @property
    def growth(self) -> int:
        """By how many bytes it grew."""
        return (self.new_size or 0) - (self.old_size or 0)


class KernelLibraryChange(msgspec.Struct, frozen=True):
    """A library of kernels, with a file or several for each GPU target, that has none for some any more."""

    library: str
    """The folder, with a star for a target in its name."""
    targets_went: tuple[str, ...]
    """GPU targets that no file of it serves any more, in any package."""


class PackageChange(msgspec.Struct, frozen=True, kw_only=True):
    """A package, and what of it differs."""

    status: Status
    name: str
    """Empty for files that belong to no distribution."""
    new_name: str = ""
    """The name of the new package, where a single one takes the place of one of another name."""
    tags: str = ""
    """Python, ABI and platform, where several wheels of one name are compared."""
    old_platforms: tuple[str, ...] = ()
    new_platforms: tuple[str, ...] = ()
    """The platform tags of a wheel."""
    new_pythons: tuple[str, ...] = ()
    new_abis: tuple[str, ...] = ()
    """The Python and ABI tags of the new wheel, all of them."""
    old_requires: tuple[str, ...] = ()
    """All that the old package required, its own version as ``VERSION``."""
    old_version: str = ""
    new_version: str = ""
    old_size: int = 0
    new_size: int = 0
    old_packed: int | None = None
    new_packed: int | None = None
    fields: tuple[FieldChange, ...] = ()
    """What differs of the metadata."""
    files: tuple[FileChange, ...] = ()
    targets_went: tuple[str, ...] = ()
    """GPU targets that no file of the package serves any more."""
    targets_replaced: tuple[str, ...] = ()
    targets_moved: tuple[str, ...] = ()
    """GPU targets that another package has come to have code for."""
    targets_came: tuple[str, ...] = ()
    kernel_libraries: tuple[KernelLibraryChange, ...] = ()
    """Those that lost a GPU; of those that other packages have a part of, too, what is lost by all."""

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"{self.name or 'files'} {self.tags}".rstrip()


class SideFacts(msgspec.Struct, frozen=True):
    """One side as a whole."""

    path: str
    packages: int
    files: int
    size: int
    packed: int | None


class Comparison(msgspec.Struct, frozen=True):
    """Everything that differs, packages without a difference included."""

    old: SideFacts
    new: SideFacts
    packages: tuple[PackageChange, ...]
    as_files: bool = False
    """Whether files alone were compared, as one side has no distributions."""
