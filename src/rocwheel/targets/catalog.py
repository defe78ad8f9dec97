"""Reads the catalog of GPU targets, families, and releases from ``catalog.toml``; each row lists its sources."""

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
"""The target of code that the runtime compiles at load time. SPIR-V isn't a processor, so it isn't in the table."""

# Numbers in names have fewer digits than this limit. `int` refuses more than 4,300 digits.
_GENERIC = re.compile(r"gfx(\d{1,6})(?:-(\d{1,6}))?-generic")
_SPECIFIC = re.compile(r"gfx(\d{1,6})(\d)([0-9a-f])(?:-.*)?")
_UNNUMBERED = (1 << 16, 0, 0)


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    sources: tuple[str, ...]
    """The names of the row's sources. `TargetCatalog.sources` explains them."""


class _Processor(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    llvm: tuple[int, int]
    """The first and last LLVM versions that were observed to emit code for the processor."""

    @property
    def mach(self) -> int:
        """EF_AMDGPU_MACH, the low byte of a code object's ``e_flags``."""
        return self._machine.mach

    @property
    def features(self) -> tuple[str, ...]:
        """The features (sramecc and xnack, in that order) that target IDs for the processor may set."""
        return tuple(sorted(self._machine.features))

    @property
    def _machine(self) -> GpuMachine:
        machine = machine_of(self.name)
        # Both tables ship with rocwheel, and a test keeps them consistent.
        assert machine is not None, self.name
        return machine


class Target(_Processor, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One processor: its name, its features, and the products that have it."""

    kind: str = ""
    """``data-center``, ``desktop``, ``integrated``, or an empty string if unknown."""
    rocm: tuple[str, str] = ("", "")
    """The last ROCm release observed without support for the processor, and the first with support, or empty strings.
    """
    package: str = ""
    """The target whose packages also contain this target's code, or an empty string if it has separate packages."""
    products: tuple[str, ...] = ()

    @property
    def version(self) -> tuple[int, int, int]:
        """Major version, minor version, and stepping: ``gfx90a`` is 9, 0, 10."""
        return _version(self.name)


class Generic(_Processor, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A generic processor, whose code (object version 6 and later) runs on each of ``members``."""

    members: tuple[str, ...]


class Family(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A named group of targets that are built and distributed together."""

    name: str
    targets: tuple[str, ...]


class Matrix(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """AMD's list of targets for ROCm ``since`` and later, up to the next row, but not beyond ``through``."""

    since: str
    through: str
    """The last minor version that was checked, such as ``7.2``. It includes its patch releases."""
    targets: tuple[str, ...]


class Release(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Gentoo's list of targets for ROCm ``since`` and later, up to the next row for the same major version."""

    since: str
    official: tuple[str, ...]
    unofficial: tuple[str, ...]


class Packager(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The list of targets that a distribution or framework builds for."""

    name: str
    targets: tuple[str, ...]
    builds: bool = True
    """Whether the packager builds for all of these targets, instead of letting users choose from them."""


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
    """The complete catalog, in file order."""

    sources: dict[str, str]
    targets: tuple[Target, ...]
    generics: tuple[Generic, ...]
    families: tuple[Family, ...]
    matrices: tuple[Matrix, ...]
    releases: tuple[Release, ...]
    packagers: tuple[Packager, ...]

    @cached_property
    def processors(self) -> dict[str, Target | Generic]:
        """Specific and generic processors, keyed by name."""
        rows: tuple[Target | Generic, ...] = (*self.targets, *self.generics)
        return {row.name: row for row in rows}

    @cached_property
    def family_targets(self) -> dict[str, tuple[str, ...]]:
        """Each family's targets, keyed by the family's name."""
        return {family.name: family.targets for family in self.families}

    def processor(self, name: str, *, source: str = "GPU target") -> Target | Generic:
        """Return the processor called ``name``; raise `UnknownTargetError` from ``source`` if the name is unknown."""
        try:
            return self.processors[name]
        except KeyError:
            raise UnknownTargetError(name, self.processors, source=source) from None

    def package_of(self, name: str) -> str:
        """Return the target in the names of packages with code for the processor ``name``, usually the same target."""
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
    """Return whether a GPU can have this target; generic processors and SPIR-V are excluded."""
    return not (target.is_generic or target.processor == SPIRV)


def sort_key(processor: str) -> tuple[int, int, int, str]:
    """Return the key that sorts processors by the numbers in their names, each generic processor before its members."""
    generic = _GENERIC.fullmatch(processor)
    if generic:
        return int(generic[1]), int(generic[2] or -1), -1, processor
    return (*_version(processor), processor)


def _version(name: str) -> tuple[int, int, int]:
    # The last two characters are the minor version (decimal) and the stepping (hexadecimal); the rest is the major
    # version.
    match = _SPECIFIC.fullmatch(name)
    return (int(match[1]), int(match[2]), int(match[3], 16)) if match else _UNNUMBERED


_OF_AMD = "gfx"


def is_family(name: str) -> bool:
    """Return whether ``name`` is one of TheRock's families, such as ``gfx94X-dcgpu``."""
    return name in load_catalog().family_targets


def is_target(name: str) -> bool:
    """Return whether ``name`` is a known processor, specific or generic, with or without features."""
    return processor_of(name) in load_catalog().processors


def targets_of(name: str, *, source: str = "GPU family") -> tuple[str, ...]:
    """Return the targets in the family ``name``. A target by itself counts as a family.

    Raises `UnknownTargetError` from ``source``, with similar names.
    """
    catalog = load_catalog()
    if name in catalog.family_targets:
        return catalog.family_targets[name]
    if is_target(name):
        return (name,)
    known = (*catalog.processors, *catalog.family_targets)
    raise UnknownTargetError(name, known, source=source, what="GPU target or family")


def check_family(name: str, *, source: str) -> None:
    """Raise `UnknownTargetError` from ``source`` for an unknown family or target with a name like those of AMD.

    A build may define its own families, whose names don't begin with ``gfx``.
    """
    if name.startswith(_OF_AMD):
        targets_of(name, source=source)


def expand_families(names: Iterable[str], *, source: str = "GPU targets") -> tuple[str, ...]:
    """Return the distinct targets of all ``names``, which are families or targets, in canonical order.

    Raises `UnknownTargetError` for an unknown name, or one `ProblemsError` for several unknown names.
    """
    groups = map_collecting(source, partial(targets_of, source=source), names)
    targets = {target for group in groups for target in group}
    return tuple(sorted(targets, key=lambda target: (sort_key(processor_of(target)), target)))


def families_of(target: str) -> tuple[str, ...]:
    """Return the families that contain the processor of ``target``: the processor itself, then the others by size."""
    processor = processor_of(target)
    holding = [family for family in load_catalog().families if processor in family.targets]
    return (processor, *(family.name for family in sorted(holding, key=lambda f: (len(f.targets), f.name))))


@lru_cache(maxsize=1)
def owned_targets() -> tuple[str, ...]:
    """Return the targets of GPUs that were sold and for which some project builds ROCm, in catalog order.

    A source must mention a product with the target. In addition, the target must be in one of these lists: AMD's
    matrices, TheRock's families, Gentoo's lists, or the builds of a distribution or framework. This excludes processors
    that only compilers support (such as gfx600, gfx940, gfx1310), and processors for which no ROCm package ever had
    code (such as gfx703). Users don't look for packages for such processors.
    """
    catalog = load_catalog()
    built = {target for family in catalog.families for target in family.targets}
    built |= {target for matrix in catalog.matrices for target in matrix.targets}
    built |= {target for release in catalog.releases for target in (*release.official, *release.unofficial)}
    built |= {target for packager in catalog.packagers if packager.builds for target in packager.targets}
    return tuple(row.name for row in catalog.targets if row.products and row.name in built)


_ReleaseRow = TypeVar("_ReleaseRow", Matrix, Release)

LIVE = "9999"
"""Gentoo's version number for a build from the latest source.

It supports the same targets as the newest recorded release.
"""


def release_for(version: str, *, source: str = "ROCm version") -> Release:
    """Return the row in Gentoo's lists for a ROCm version: ``6.4`` is ``6.4.0``, and ``9999`` is the newest.

    Raises `InputError` for text that isn't a version, and `UnknownReleaseError` for a major version that isn't
    recorded.
    """
    releases = load_catalog().releases
    return releases[-1] if version == LIVE else _row_for(version, releases, source)


def matrix_for(version: str, *, source: str = "ROCm version") -> Matrix:
    """Return the row in AMD's lists for a ROCm version.

    Raises `InputError` for text that isn't a version, and `UnknownReleaseError` for a minor version that wasn't
    checked.
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
        *others, last = map(str, majors)
        raise UnknownReleaseError(version, f"ROCm {', '.join(others)}, or {last}", source=source)
    return rows[-1]


def _parse(version: str, source: str) -> Version:
    try:
        # A release candidate has the targets of its release.
        return Version(Version(version).base_version)
    except ValueError as e:
        raise InputError(source, f"{version!r} isn't a version", expected="a version such as 6.4 or 7.1.1") from e


def _rows_until(wanted: Version, table: Sequence[_ReleaseRow]) -> list[_ReleaseRow]:
    return [row for row in table if Version(row.since).major == wanted.major and Version(row.since) <= wanted]


def _minor(version: str) -> tuple[int, int]:
    parsed = Version(version)
    return parsed.major, parsed.minor


def _spans(matrices: Sequence[Matrix]) -> str:
    """Return the versions in the rows, with adjacent rows combined into one range: ``6.0 to 6.4, 7.0 to 7.2``."""
    spans: list[tuple[str, str]] = []
    for row in matrices:
        major, minor = _minor(spans[-1][1]) if spans else (0, 0)
        adjoins = spans and _minor(row.since) in {(major, minor), (major, minor + 1)}
        spans = [*spans[:-1], (spans[-1][0], row.through)] if adjoins else [*spans, (row.since, row.through)]
    return ", ".join(f"{first} to {last}" for first, last in spans)


def first_knowing(processor: str) -> tuple[str, str]:
    """Return `Target.rocm` for a processor, or two empty strings if it isn't recorded."""
    row = load_catalog().processors.get(processor)
    return row.rocm if isinstance(row, Target) else ("", "")


def why_unknown(processor: str, rocm: str) -> str:
    """Return why a GPU can't run code with a ROCm release whose runtime doesn't recognize the processor.

    The result is empty if the runtime recognizes the processor, or if no information is recorded. A release with only
    two numbers, such as 6.4, represents every release that begins with these numbers.
    """
    without, first = first_knowing(processor)
    if not without or _minor(rocm) > _minor(without):
        return ""
    known = f"; ROCm {first} and later do" if first else ""
    return f"ROCm {rocm} doesn't recognize {processor}{known}"


def official_span(target: str) -> tuple[str, str]:
    """Return the first version that officially supports a target, and the first later version that doesn't.

    Both are ``""`` if the target was never supported officially; the second is ``""`` if it still is. The records begin
    with 5.0, so that version also represents earlier versions.
    """
    first = last = ""
    for row in load_catalog().releases:
        if target in row.official:
            first, last = first or row.since, ""
        elif first and not last:
            last = row.since
    return first, last


class CodeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A rule that code for any of ``code`` works on all of ``agents``, with its source and measured evidence."""

    code: tuple[str, ...]
    agents: tuple[str, ...]
    loads: bool
    """Whether runtimes with distribution patches load the code under its own name."""
    relabels: bool
    """Whether the code may be offered under the other target's name, so that unmodified runtimes load it."""
    source: str
    measured: str
    note: str = ""

    def is_about(self, code: str, agent: str) -> bool:
        """Return whether the rule applies to code for the processor ``code`` on the processor ``agent``."""
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
    """Return the features of ``processor`` that runtimes don't name, because these features are off there."""
    return _load_table().unnamed.get(processor, ())


def loads_when_patched(code: str, agent: str) -> bool:
    """Return whether patched runtimes load code for the processor ``code`` on ``agent``."""
    return any(rule.loads and rule.is_about(code, agent) for rule in load_rules())


def find_relabeling(code: str, agent: str) -> CodeRule | None:
    """Return the rule that allows offering code for ``code`` to ``agent`` under the agent's name, or `None`."""
    return next((rule for rule in load_rules() if rule.relabels and rule.is_about(code, agent)), None)


def relabeled_agents(code: str) -> tuple[str, ...]:
    """Return the other processors to which code for the processor ``code`` may be offered, without duplicates."""
    agents = (agent for rule in load_rules() if rule.relabels and code in rule.code for agent in rule.agents)
    return tuple(dict.fromkeys(agent for agent in agents if agent != code))
