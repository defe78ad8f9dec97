"""The catalogue of GPU targets, read from ``catalog.toml``; every row names its sources."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import Machine, machine_of
from rocwheel.core.decoding import read_table
from rocwheel.targets.errors import UnknownTargetError

if TYPE_CHECKING:
    from rocwheel.binary.code_objects import TargetId

__all__ = [
    "SPIRV",
    "Family",
    "Generic",
    "Matrix",
    "Packager",
    "Release",
    "Target",
    "TargetCatalog",
    "is_specific",
    "load_catalog",
    "sort_key",
]

SPIRV = "amdgcnspirv"
"""The target of code that the runtime compiles for the GPU when it loads it. Not a processor, so not in the table."""

# Names have fewer digits than that; `int` refuses more than 4,300.
_GENERIC = re.compile(r"gfx(\d{1,6})(?:-(\d{1,6}))?-generic")
_SPECIFIC = re.compile(r"gfx(\d{1,6})(\d)([0-9a-f])(?:-.*)?")
_UNNUMBERED = (1 << 16, 0, 0)


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    sources: tuple[str, ...]
    """Names of the facts' sources, explained in `TargetCatalog.sources`."""


class _Processor(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    llvm: tuple[int, int]
    """First and last version of LLVM seen to emit code for it."""

    @property
    def mach(self) -> int:
        """EF_AMDGPU_MACH, the low byte of a code object's ``e_flags``."""
        return self._machine.mach

    @property
    def features(self) -> tuple[str, ...]:
        """The features that a target id of it may set, of sramecc and xnack, in that order."""
        return tuple(sorted(self._machine.features))

    @property
    def _machine(self) -> Machine:
        machine = machine_of(self.name)
        # Both tables ship with rocwheel, and a test holds them together.
        assert machine is not None, self.name
        return machine


class Target(_Processor, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One processor: its name, its features, and the products that have it."""

    kind: str = ""
    """``data-centre``, ``desktop``, ``integrated``, or empty when not known."""
    package: str = ""
    """The target whose packages also have the code for this one; empty where it has packages of its own."""
    products: tuple[str, ...] = ()

    @property
    def version(self) -> tuple[int, int, int]:
        """Major, minor and stepping: ``gfx90a`` is 9, 0, 10."""
        return _version(self.name)


class Generic(_Processor, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A generic processor: its code (object version 6 and up) runs on each of ``members``."""

    members: tuple[str, ...]


class Family(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A named group of targets that are built and shipped together."""

    name: str
    targets: tuple[str, ...]


class Matrix(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What AMD lists for ROCm from version ``since`` on, until the next row and no further than ``through``."""

    since: str
    through: str
    """The last minor version that was read, such as ``7.2`` with all of its patch releases."""
    targets: tuple[str, ...]


class Release(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What Gentoo says that ROCm supports from version ``since`` on, until the next row of the same major version."""

    since: str
    official: tuple[str, ...]
    unofficial: tuple[str, ...]


class Packager(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The list that a distribution or framework builds for."""

    name: str
    targets: tuple[str, ...]
    builds: bool = True
    """Whether it builds for these, rather than letting its users choose among them."""


class TargetCatalog(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    dict=True,
    rename={
        "targets": "target",
        "generics": "generic",
        "families": "family",
        "matrices": "matrix",
        "releases": "release",
        "packagers": "packager",
    },
):
    """The whole catalogue, in the order of the file."""

    sources: dict[str, str]
    targets: tuple[Target, ...]
    generics: tuple[Generic, ...]
    families: tuple[Family, ...]
    matrices: tuple[Matrix, ...]
    releases: tuple[Release, ...]
    packagers: tuple[Packager, ...]

    @cached_property
    def processors(self) -> dict[str, Target | Generic]:
        """Specific and generic processors by name."""
        rows: tuple[Target | Generic, ...] = (*self.targets, *self.generics)
        return {row.name: row for row in rows}

    @cached_property
    def family_targets(self) -> dict[str, tuple[str, ...]]:
        """The targets of each family by its name."""
        return {family.name: family.targets for family in self.families}

    def processor(self, name: str, *, source: str = "GPU target") -> Target | Generic:
        """Return the processor called ``name``; raises `UnknownTargetError`, led by ``source``, when there is none."""
        try:
            return self.processors[name]
        except KeyError:
            raise UnknownTargetError(name, self.processors, source=source) from None

    def package_of(self, name: str) -> str:
        """Return the target that packages with code for the processor ``name`` are named for: mostly itself."""
        row = self.processors.get(name)
        return (isinstance(row, Target) and row.package) or name

    def generics_of(self, name: str) -> tuple[str, ...]:
        """Return the generic processors whose code runs on the processor ``name``."""
        return tuple(generic.name for generic in self.generics if name in generic.members)


@lru_cache(maxsize=1)
def load_catalog() -> TargetCatalog:
    """Return the catalogue that ships with rocwheel."""
    return read_table("rocwheel.targets.catalog", "catalog.toml", TargetCatalog)


def is_specific(target: TargetId) -> bool:
    """Return whether a target is one that a GPU has: neither a generic processor nor SPIR-V."""
    return not (target.is_generic or target.processor == SPIRV)


def sort_key(processor: str) -> tuple[int, int, int, str]:
    """Return the key that orders processors: by the numbers in their names, a generic one before its members."""
    generic = _GENERIC.fullmatch(processor)
    if generic:
        return int(generic[1]), int(generic[2] or -1), -1, processor
    return (*_version(processor), processor)


def _version(name: str) -> tuple[int, int, int]:
    # The last two characters are the minor version (decimal) and the stepping (hexadecimal), what is left the major.
    match = _SPECIFIC.fullmatch(name)
    return (int(match[1]), int(match[2]), int(match[3], 16)) if match else _UNNUMBERED
