"""Decides which files a package takes from the merged prefixes and where the package puts them, without symlinks."""

from __future__ import annotations

import posixpath
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import FileKind
from rocwheel.artifacts.catalog import Entry, PrefixIndex, describe_end, resolve_link
from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.binary.code_objects import processor_of
from rocwheel.build.plan import Dropped
from rocwheel.build.recipe import Layout
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.targets.catalog import expand_families, is_family, is_target, load_catalog, targets_of
from rocwheel.targets.serving import split_overlay_path

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.binary.elf.facts import Elf
    from rocwheel.build.file_facts import Facts
    from rocwheel.build.recipe import Prefer, Recipe, Take


PrefixEntries = dict[str, Entry]
"""An install prefix: its files, symlinks, and directories, sorted by path."""


GENERIC = "generic"
"""The target of an artifact that is for all GPUs."""


class PathConflictError(InputError):
    """A path in the prefix has different content in two artifacts, or occurs twice in one artifact."""

    def __init__(self, path: str, first: str, second: str) -> None:
        found = f"differs between the artifacts {first} and {second}"
        remedy = "Remove one of the files, or add a [[prefer]] row (pattern, artifact, reason) to the recipe."
        if first == second:
            found = f"occurs more than once in the artifact {first}, below bin folders whose names differ only in case"
            remedy = "Remove all but one of the files, because they have the same path on Windows."
        super().__init__(path, found, remedy=remedy)


def leave_out(catalog: Catalog, recipe: Recipe) -> tuple[Catalog, tuple[Dropped, ...]]:
    """Return a catalog without the entries that the recipe always leaves out, and the sorted list of these entries."""
    if not recipe.leave_out:
        return catalog, ()
    patterns = PathPatterns(recipe.leave_out)
    left = [entry for entry in catalog.entries if entry.source and patterns.matches(entry.path)]
    paths = {entry.path for entry in left}
    kept = tuple(entry for entry in catalog.entries if entry.path not in paths)
    rows = (Dropped(entry.path, str(entry.artifact), "the recipe leaves it out of all packages") for entry in left)
    return msgspec.structs.replace(catalog, entries=kept), tuple(sorted(rows))


def leave_out_targets(catalog: Catalog, processors: Collection[str]) -> tuple[Catalog, tuple[Dropped, ...]]:
    """Return a catalog without artifacts for GPUs other than ``processors``, and a row for each removed artifact.

    An artifact is kept if at least one of the processors can use it.
    """
    others = [name for name in catalog.artifacts if name.target != GENERIC and not _serves(name.target, processors)]
    left = frozenset(others)
    rows = (Dropped("", str(name), f"its target {name.target} is not selected") for name in others)
    entries = tuple(entry for entry in catalog.entries if entry.artifact not in left)
    names = tuple(name for name in catalog.artifacts if name not in left)
    return msgspec.structs.replace(catalog, artifacts=names, entries=entries), tuple(rows)


def _serves(target: str, processors: Collection[str]) -> bool:
    served = targets_of(target) if is_family(target) else (processor_of(target),)
    return not set(served).isdisjoint(processors)


def merge_entries(root: str, entries: Iterable[Entry], facts: Facts, prefer: Sequence[Prefer]) -> PrefixEntries:
    """Merge entries, sorted by path, into one prefix. Artifacts may share a path if its content is identical.

    Raises `ProblemsError` with every path whose content differs between artifacts, unless a ``prefer`` row resolves the
    conflict.
    """
    rules = [(PathPatterns((row.pattern,)), row.artifact) for row in prefer]
    tree: PrefixEntries = {}
    problems = []
    for path, group in groupby(entries, key=lambda entry: entry.path):
        claims = list(group)
        try:
            tree[path] = claims[0] if len(claims) == 1 else _winner(claims, facts, rules)
        except PathConflictError as e:
            problems.append(e)
    if problems:
        raise ProblemsError(root, problems)
    return tree


def _winner(claims: list[Entry], facts: Facts, rules: list[tuple[PathPatterns, str]]) -> Entry:
    first = claims[0]
    other = next((claim for claim in claims[1:] if not _is_same(first, claim, facts)), None)
    if other is None:
        return first
    for patterns, artifact in rules:
        if patterns.matches(first.path):
            preferred = [claim for claim in claims if artifact in (claim.artifact.name, str(claim.artifact))]
            if preferred:
                return preferred[0]
    raise PathConflictError(first.path, str(first.artifact), str(other.artifact))


def _is_same(one: Entry, other: Entry, facts: Facts) -> bool:
    if one.kind is not other.kind:
        return False
    if one.source and other.source:
        return facts.digests[one.source] == facts.digests[other.source]
    return one.link == other.link


def take_entries(tree: PrefixEntries, takes: Sequence[Take]) -> PrefixEntries:
    """Return the part of a prefix that the ``take`` rules of a package select."""
    selectors = [_selector(take) for take in takes]
    return {path: entry for path, entry in tree.items() if any(selects(entry) for selects in selectors)}


def _selector(take: Take) -> Callable[[Entry], bool]:
    patterns = PathPatterns(take.include, take.exclude)
    names, components, excluded = set(take.artifacts), set(take.components), set(take.exclude_artifacts)

    def selects(entry: Entry) -> bool:
        artifact = entry.artifact
        named = artifact.name in names or "*" in names
        return (
            named
            and artifact.component in components
            and artifact.name not in excluded
            and (entry.kind is FileKind.DIRECTORY or patterns.matches(entry.path))
        )

    return selects


_GENERIC = "generic"


class Prefixes(msgspec.Struct, frozen=True):
    """Merged prefixes, keyed by variant.

    The empty variant is for all GPUs. In a neutral layout, the other variants are GPU targets, each with only its own
    files. In a per-family layout, they are target families, each with its own files and the files for all GPUs.
    """

    layout: Layout
    trees: dict[str, PrefixEntries]

    @property
    def variants(self) -> tuple[str, ...]:
        """The targets or families, in canonical order."""
        return tuple(variant for variant in self.trees if variant)

    @property
    def families(self) -> tuple[str, ...]:
        """The families of a per-family layout; empty in a neutral layout."""
        return self.variants if self.layout == "per-family" else ()


def merge_prefixes(catalog: Catalog, recipe: Recipe, facts: Facts) -> Prefixes:
    """Merge the artifacts of a catalog.

    XNACK variants of a target share the prefix of their processor, and gfx1250-strict shares the prefix of gfx1250.
    Raises `ProblemsError` with every path where artifacts differ, and `InputError` if the recipe requires a per-family
    layout but there are no families.
    """
    layout = recipe.layout or _layout_of(catalog)
    if layout == "per-family" and all(name.target == _GENERIC for name in catalog.artifacts):
        found, expected = (
            "has no artifact for a target family",
            "at least one, because the recipe's layout is per-family",
        )
        raise InputError(catalog.root, found, expected=expected, remedy="Remove the layout from the recipe.")
    parts: dict[str, list[Entry]] = {"": []}
    for entry in catalog.entries:
        target = entry.artifact.base_target
        variant = "" if entry.artifact.target == _GENERIC else load_catalog().package_of(target)
        parts.setdefault(variant, []).append(entry)
    variants = canonical_order(variant for variant in parts if variant)
    trees = {"": merge_entries(catalog.root, parts[""], facts, recipe.prefer)}
    for variant in variants:
        below = parts[""] if layout == "per-family" else []
        entries = sorted([*below, *parts[variant]], key=lambda entry: (entry.path, entry.artifact))
        trees[variant] = merge_entries(catalog.root, entries, facts, recipe.prefer)
    return Prefixes(layout, trees)


def canonical_order(targets: Iterable[str]) -> tuple[str, ...]:
    """Return GPU targets in the catalog's order. Families and unknown targets come last, sorted by name."""
    names = set(targets)
    known = {name for name in names if is_target(name)}
    return (*expand_families(known, source="artifacts"), *sorted(names - known))


def _layout_of(catalog: Catalog) -> Layout:
    variants = {name.target for name in catalog.artifacts} - {_GENERIC}
    if not variants:
        return "neutral"
    if catalog.manifest is not None and "KPACK_SPLIT_ARTIFACTS" in catalog.manifest.flags:
        return "neutral" if catalog.manifest.kpack_split else "per-family"
    return "per-family" if any(map(is_family, variants)) else "neutral"


class PlacedStub(msgspec.Struct, frozen=True):
    """A stub that replaces a symlink to an executable. ``target`` is relative to the stub's folder."""

    target: str
    machine: int
    artifact: str
    """The artifact that contains the symlink."""


class Placement(msgspec.Struct, frozen=True):
    """The contents of a package, keyed by path in its platform module."""

    files: dict[str, Entry]
    """Files of artifacts, but never symlinks."""
    stubs: dict[str, PlacedStub]
    other_names: dict[str, str]
    """Other names for shipped libraries. Each path in the artifacts' prefix maps to the path of the shipped file."""
    dropped: tuple[Dropped, ...]

    @property
    def paths(self) -> dict[str, None]:
        """The paths of all shipped files and stubs."""
        return dict.fromkeys((*self.files, *self.stubs))


def place_runtime(
    selected: PrefixEntries, prefix: PrefixIndex, facts: Facts, elsewhere: Mapping[str, str]
) -> Placement:
    """Place the selected entries of a package.

    Symlinks are followed in ``prefix``. ``elsewhere`` maps paths in required packages to the same paths relative to
    this package's platform module.

    Raises `ProblemsError` with every pair of different files that have the same path.
    """
    placer = _Placer(selected, prefix, facts, elsewhere)
    for entry in selected.values():
        placer.place(entry)
    if placer.problems:
        subject = "shared library paths"
        raise ProblemsError(subject, placer.problems)
    return Placement(placer.files, placer.stubs, placer.other_names, tuple(sorted(placer.dropped)))


class _Placer:
    def __init__(
        self, selected: PrefixEntries, prefix: PrefixIndex, facts: Facts, elsewhere: Mapping[str, str]
    ) -> None:
        self._selected = selected
        self._prefix = prefix
        self._facts = facts
        self._elsewhere = elsewhere
        self.files: dict[str, Entry] = {}
        self.stubs: dict[str, PlacedStub] = {}
        self.other_names: dict[str, str] = {}
        self.dropped: list[Dropped] = []
        self.problems: list[PathConflictError] = []

    def place(self, entry: Entry) -> None:
        if entry.kind is FileKind.SYMLINK:
            self._place_link(entry)
        elif entry.kind is FileKind.FILE:
            place = self._library_place(entry) or entry.path
            if place != entry.path:
                self.other_names[entry.path] = place
            self._put(place, entry)

    def _put(self, place: str, entry: Entry) -> None:
        there = self.files.setdefault(place, entry)
        if there != entry:
            one, other = (f"{claim.artifact} ({claim.path})" for claim in (there, entry))
            self.problems.append(PathConflictError(place, one, other))

    def _library_place(self, entry: Entry) -> str | None:
        """Return the path for a shared library: its SONAME, unless another file has a better claim to that name.

        A library for a single GPU target stays next to the library that it replaces.
        """
        elf = self._facts.elf(entry)
        if elf is None or not elf.is_shared_library or not elf.soname or split_overlay_path(entry.path):
            return None
        place = posixpath.join(posixpath.dirname(entry.path), elf.soname)
        holder = resolve_link(self._prefix, place).entry
        return place if holder is None or holder == entry else None

    def _place_link(self, link: Entry) -> None:
        resolution = resolve_link(self._prefix, link.path)
        target = resolution.entry
        if target is None:
            self._drop(link, f"a symlink {describe_end(resolution)}")
            return
        elf = self._facts.elf(target)
        if elf is not None and elf.is_shared_library and elf.soname:
            self._place_library_link(link, target, elf.soname)
        elif self._facts.is_program(target):
            self._place_stub(link, target, elf)
        else:
            self._put(link.path, target)

    def _place_library_link(self, link: Entry, target: Entry, soname: str) -> None:
        place = self._library_place(target) or target.path
        if target.path in self._selected:
            if link.path != place:
                self.other_names[link.path] = place
        elif target.path in self._elsewhere:
            self._drop(link, f"{target.path} is in a package that this package requires")
        elif posixpath.basename(link.path) == soname:
            self._put(link.path, target)
        else:
            self._drop(link, f"another name for {target.path}, which ships under its SONAME {soname}")

    def _place_stub(self, link: Entry, target: Entry, elf: Elf | None) -> None:
        place = target.path if target.path in self._selected else self._elsewhere.get(target.path)
        if place is None:
            self._drop(link, f"{target.path} is not in any package that this package requires")
            return
        relative = posixpath.relpath(place, posixpath.dirname(link.path))
        machine = self._facts.machine if elf is None else elf.machine
        self.stubs[link.path] = PlacedStub(relative, machine, str(link.artifact))

    def _drop(self, entry: Entry, reason: str) -> None:
        self.dropped.append(Dropped(entry.path, str(entry.artifact), reason))
