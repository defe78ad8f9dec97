"""The catalog of GPU targets, families and releases, read from ``catalog.toml``; each row names its sources."""

from __future__ import annotations

import re
from functools import cache, cached_property, lru_cache, partial
from typing import TYPE_CHECKING, TypeVar

import msgspec
from packaging.version import Version

from rocwheel.binary.code_objects import GpuMachine, machine_of, processor_of
from rocwheel.core.decoding import read_table
from rocwheel.core.errors import InputError
from rocwheel.core.workers import map_collecting
from rocwheel.targets.errors import UnknownReleaseError, UnknownTargetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.binary.code_objects import TargetId


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
    def _machine(self) -> GpuMachine:
        machine = machine_of(self.name)
        # Both tables ship with rocwheel, and a test holds them together.
        assert machine is not None, self.name
        return machine


class Target(_Processor, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One processor: its name, its features, and the products that have it."""

    kind: str = ""
    """``data-centre``, ``desktop``, ``integrated``, or empty when not known."""
    rocm: tuple[str, str] = ("", "")
    """Last ROCm release seen whose runtime does not know it, and the first seen that does; empty where none was."""
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
    """The whole catalog, in the order of the file."""

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
    """Return the catalog that ships with rocwheel."""
    return read_table("rocwheel.targets", "catalog.toml", TargetCatalog)


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


_OF_AMD = "gfx"


def is_family(name: str) -> bool:
    """Return whether ``name`` is one of TheRock's families, such as ``gfx94X-dcgpu``."""
    return name in load_catalog().family_targets


def is_target(name: str) -> bool:
    """Return whether ``name`` is a known processor, specific or generic, whatever features follow it."""
    return processor_of(name) in load_catalog().processors


def targets_of(name: str, *, source: str = "GPU family") -> tuple[str, ...]:
    """Return the targets of the family ``name``; a target is its own family.

    Raises `UnknownTargetError`, led by ``source``, with the nearest names.
    """
    catalog = load_catalog()
    if name in catalog.family_targets:
        return catalog.family_targets[name]
    if is_target(name):
        return (name,)
    known = (*catalog.processors, *catalog.family_targets)
    raise UnknownTargetError(name, known, source=source, what="GPU target or family")


def check_family(name: str, *, source: str) -> None:
    """Raise `UnknownTargetError`, led by ``source``, for a name of AMD's kind that is no known family or target.

    A build may have families of its own, whose names don't begin with ``gfx``.
    """
    if name.startswith(_OF_AMD):
        targets_of(name, source=source)


def expand_families(names: Iterable[str], *, source: str = "GPU targets") -> tuple[str, ...]:
    """Return the targets of all ``names``, families or targets, each once and in canonical order.

    Raises the `UnknownTargetError` of an unknown name, or one `ProblemsError` for several.
    """
    groups = map_collecting(source, partial(targets_of, source=source), names)
    targets = {target for group in groups for target in group}
    return tuple(sorted(targets, key=lambda target: (sort_key(processor_of(target)), target)))


def families_of(target: str) -> tuple[str, ...]:
    """Return the families that hold the processor of ``target``: the processor itself, then the smallest first."""
    processor = processor_of(target)
    holding = [family for family in load_catalog().families if processor in family.targets]
    return (processor, *(family.name for family in sorted(holding, key=lambda f: (len(f.targets), f.name))))


@lru_cache(maxsize=1)
def owned_targets() -> tuple[str, ...]:
    """Return the targets of GPUs that were sold and that somebody builds ROCm for, in the catalog's order.

    A source has to name a product, and one of these has to have the target: AMD's matrices, TheRock's families,
    Gentoo's lists, or what a distribution or framework builds for. Left out are processors that only compilers know
    (such as gfx600, gfx940, gfx1310), and those that no ROCm package ever had code for (such as gfx703): nobody looks
    for a package for these.
    """
    catalog = load_catalog()
    built = {target for family in catalog.families for target in family.targets}
    built |= {target for matrix in catalog.matrices for target in matrix.targets}
    built |= {target for release in catalog.releases for target in (*release.official, *release.unofficial)}
    built |= {target for packager in catalog.packagers if packager.builds for target in packager.targets}
    return tuple(row.name for row in catalog.targets if row.products and row.name in built)


_ReleaseRow = TypeVar("_ReleaseRow", Matrix, Release)

LIVE = "9999"
"""What Gentoo calls a build of the newest source; it supports what the newest recorded release supports."""


def release_for(version: str, *, source: str = "ROCm version") -> Release:
    """Return the row of Gentoo's lists that holds for a ROCm version: ``6.4`` is ``6.4.0``, and ``9999`` is the newest.

    Raises `InputError` for text that is not a version, and `UnknownReleaseError` for a major version without a record.
    """
    releases = load_catalog().releases
    return releases[-1] if version == LIVE else _row_for(version, releases, source)


def matrix_for(version: str, *, source: str = "ROCm version") -> Matrix:
    """Return the row of AMD's lists that holds for a ROCm version.

    Raises `InputError` for text that is not a version, and `UnknownReleaseError` for a minor version that nobody read.
    """
    matrices = load_catalog().matrices
    wanted = _parse(version, source)
    rows = _rows_until(wanted, matrices)
    if not rows or (wanted.major, wanted.minor) > _minor(rows[-1].through):
        raise UnknownReleaseError(version, _spans(matrices), source=source)
    return rows[-1]


def _row_for(version: str, table: Sequence[_ReleaseRow], source: str) -> _ReleaseRow:
    rows = _rows_until(_parse(version, source), table)
    if not rows:
        majors = sorted({Version(row.since).major for row in table})
        raise UnknownReleaseError(version, f"major version {', '.join(map(str, majors))}", source=source)
    return rows[-1]


def _parse(version: str, source: str) -> Version:
    try:
        # A release candidate has the targets of its release.
        return Version(Version(version).base_version)
    except ValueError as e:
        raise InputError(source, f"{version!r} is not a version", expected="a version such as 6.4 or 7.1.1") from e


def _rows_until(wanted: Version, table: Sequence[_ReleaseRow]) -> list[_ReleaseRow]:
    return [row for row in table if Version(row.since).major == wanted.major and Version(row.since) <= wanted]


def _minor(version: str) -> tuple[int, int]:
    parsed = Version(version)
    return parsed.major, parsed.minor


def _spans(matrices: Sequence[Matrix]) -> str:
    """Return the versions that the rows hold for, adjoining rows as one span: ``6.0 to 6.4, 7.0 to 7.2``."""
    spans: list[tuple[str, str]] = []
    for row in matrices:
        major, minor = _minor(spans[-1][1]) if spans else (0, 0)
        adjoins = spans and _minor(row.since) in {(major, minor), (major, minor + 1)}
        spans = [*spans[:-1], (spans[-1][0], row.through)] if adjoins else [*spans, (row.since, row.through)]
    return ", ".join(f"{first} to {last}" for first, last in spans)


def first_knowing(processor: str) -> tuple[str, str]:
    """Return `Target.rocm` of a processor; two empty strings for one that has none."""
    row = load_catalog().processors.get(processor)
    return row.rocm if isinstance(row, Target) else ("", "")


def why_unknown(processor: str, rocm: str) -> str:
    """Return why no code runs on a GPU with a ROCm release: its runtime does not know the processor.

    Empty if it does, or where that is not known. A release of two numbers, 6.4, stands for all that begin with it.
    """
    without, first = first_knowing(processor)
    if not without or _minor(rocm) > _minor(without):
        return ""
    known = f"; ROCm {first} and later do" if first else ""
    return f"ROCm {rocm} does not know {processor}{known}"


def official_span(target: str) -> tuple[str, str]:
    """Return the versions between which a target was official: the first, and the first that no longer has it.

    Both are ``""`` when it never was, the second when it still is. The record begins with 5.0, so that version stands
    for itself and all before it.
    """
    first = last = ""
    for row in load_catalog().releases:
        if target in row.official:
            first, last = first or row.since, ""
        elif first and not last:
            last = row.since
    return first, last


class CodeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Code for each of ``code`` suits each of ``agents``; who says so, and what was measured."""

    code: tuple[str, ...]
    agents: tuple[str, ...]
    loads: bool
    """Whether runtimes that distributions patched load it under its own name."""
    relabels: bool
    """Whether it may be offered under the other's name, which unmodified runtimes load."""
    source: str
    measured: str
    note: str = ""

    def is_about(self, code: str, agent: str) -> bool:
        """Return whether the rule is about code for one processor on another."""
        return code in self.code and agent in self.agents


class _Table(msgspec.Struct, frozen=True):
    unnamed: dict[str, tuple[str, ...]]
    rule: tuple[CodeRule, ...]


@cache
def _load_table() -> _Table:
    return read_table("rocwheel.targets", "similar_code.toml", _Table)


def load_rules() -> tuple[CodeRule, ...]:
    """Return all rules."""
    return _load_table().rule


def unnamed_features(processor: str) -> tuple[str, ...]:
    """Return the features of ``processor`` that runtimes don't name, as they are switched off there."""
    return _load_table().unnamed.get(processor, ())


def loads_when_patched(code: str, agent: str) -> bool:
    """Return whether patched runtimes load code for the processor ``code`` on ``agent``."""
    return any(rule.loads and rule.is_about(code, agent) for rule in load_rules())


def find_relabeling(code: str, agent: str) -> CodeRule | None:
    """Return the rule by which code for the processor ``code`` may be offered to ``agent`` under its name."""
    return next((rule for rule in load_rules() if rule.relabels and rule.is_about(code, agent)), None)


def relabeled_agents(code: str) -> tuple[str, ...]:
    """Return the other processors to which code for the processor ``code`` may be offered, each once."""
    agents = (agent for rule in load_rules() if rule.relabels and code in rule.code for agent in rule.agents)
    return tuple(dict.fromkeys(agent for agent in agents if agent != code))
