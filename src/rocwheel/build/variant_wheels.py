"""Creates wheel variants (a draft) for single-GPU packages. The variants share a name, and installers choose one."""

from __future__ import annotations

import os
from collections import defaultdict
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.binary.code_objects import processor_of
from rocwheel.build.plan import PlannedWheel
from rocwheel.build.sdk_source import sdk_license
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.scratch import remove_abandoned
from rocwheel.core.workers import attempt_all, map_collecting, raise_all
from rocwheel.targets.catalog import load_catalog, sort_key
from rocwheel.targets.declaration import DECLARATION_NAME, decode_declaration
from rocwheel.targets.kernel_files import find_family, load_table
from rocwheel.wheels.file_names import is_wheel_file_name, name_and_version, split_wheel_file_name
from rocwheel.wheels.metadata import CoreMetadata, CoreMetadataError, metadata_files, parse_core_metadata
from rocwheel.wheels.sdist import SourceDate
from rocwheel.wheels.tags import lowest_glibc, parse_platforms
from rocwheel.wheels.variants import load_draft, make_metadata, render_metadata
from rocwheel.wheels.writing import WheelName, WheelWriter
from rocwheel.wheels.zip_directory import find_dist_info, find_metadata, read_directory
from rocwheel.wheels.zip_reader import read_member

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rocwheel.core.errors import RocwheelError


WordKind = Literal["target", "generic", "family", "shared"]
"""The meaning of a name's ending.

``shared`` means files for several targets, in addition to each target's own files.
"""

_BEGIN = "-gfx"


class GpuPackage(msgspec.Struct, frozen=True):
    """A wheel whose name ends with a GPU."""

    base: str
    """The normalized distribution name without the GPU at the end."""
    word: str
    """The ending of the name, such as a target, ``gfx9-4-generic``, ``gfx94x-dcgpu``, or ``gfx12-0``."""
    version: str
    tags: tuple[str, str, str]
    """The Python, ABI, and platform tags from the file name."""
    declared: tuple[str, ...] = ()
    """The processors that the package declares code for."""
    requires: tuple[str, ...] = ()
    requires_python: str = ""

    @property
    def pin(self) -> str:
        """The requirement for exactly this package."""
        return f"{self.base}-{self.word}=={self.version}"

    @property
    def machine(self) -> tuple[str, ...]:
        """The properties that packages must share to be installed together: Python, ABI, and systems."""
        return (*self.tags[:2], *sorted({f"{tag.system}-{tag.machine}" for tag in parse_platforms(self.tags[2])}))

    @property
    def age(self) -> tuple[tuple[int, int], str]:
        """The sort key for platform tags of the same machine.

        A system that supports the newest tag supports all of them.
        """
        return lowest_glibc(parse_platforms(self.tags[2])) or (0, 0), self.tags[2]

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets of the GPUs that the package supports, without features.

        The target in the package's name comes first.
        """
        catalog = load_catalog()
        kind, word = classify_word(self.word)
        members = {generic.name: generic.members for generic in catalog.generics}
        code = [target for name in self.declared for target in members.get(name, (name,))]
        if kind == "target":
            return tuple(dict.fromkeys((word, *code)))
        if kind == "generic":
            return members[word]
        family = find_family(word)
        named = family.targets if family else catalog.family_targets[word]
        specific = [target for target in named if "-" not in target]
        return tuple(target for target in specific if target in code) or tuple(specific)


def split_distribution(name: str) -> tuple[str, str] | None:
    """Split a distribution name into the name without the GPU and the GPU at its end; return `None` for other names."""
    base, begin, rest = canonicalize_name(name).rpartition(_BEGIN)
    word = f"gfx{rest}"
    return (base, word) if begin and base and word in _words() else None


def classify_word(word: str) -> tuple[WordKind, str]:
    """Return the meaning of a name's ending, and its form in the catalog."""
    return _words()[word]


@cache
def _words() -> dict[str, tuple[WordKind, str]]:
    """Return all possible endings of names, in normalized form."""
    catalog = load_catalog()
    generics = {generic.name for generic in catalog.generics}
    found: dict[str, tuple[WordKind, str]] = {}
    found |= {str(canonicalize_name(family.name)): ("shared", family.name) for family in load_table().families}
    found |= {str(canonicalize_name(name)): ("family", name) for name in catalog.family_targets}
    found |= {name: ("generic" if name in generics else "target", name) for name in catalog.processors}
    return found


_RANKS = {"target": 0, "generic": 2, "family": 3, "shared": 4}


class Choice(msgspec.Struct, frozen=True):
    """A variant that selects packages for GPUs with these ``targets``."""

    label: str
    targets: tuple[str, ...]
    packages: tuple[GpuPackage, ...]
    """The package that the variant is named after, followed by packages with files that several targets share."""


def make_choices(packages: Sequence[GpuPackage]) -> list[Choice]:
    """Return the variants of packages that differ only in the GPU, in canonical order of targets.

    Each target gets the package whose code is the best match. The target's own package comes first, then relabeled
    code, then generic code for the fewest processors, and then the smallest family. A target also gets the packages
    with kernels that it shares with other targets. Targets with the same packages share a variant.
    """
    by_target: dict[str, tuple[GpuPackage, ...]] = {}
    for target in sorted({target for package in packages for target in package.targets}, key=sort_key):
        serving = [package for package in packages if target in package.targets]
        shared = [package for package in serving if classify_word(package.word)[0] == "shared"]
        others = sorted((package for package in serving if package not in shared), key=lambda one: _rank(one, target))
        by_target[target] = (*others[:1], *sorted(shared, key=lambda one: one.word))
    grouped: dict[tuple[GpuPackage, ...], list[str]] = {}
    for target, needed in by_target.items():
        grouped.setdefault(needed, []).append(target)
    # A label is the end of the first package's name, followed by a target if that end is not unique.
    labels: dict[tuple[GpuPackage, ...], str] = {}
    for needed, targets in grouped.items():
        word = needed[0].word.replace("-", "_")
        labels[needed] = word if word not in labels.values() else f"{word}_{targets[0]}"
    return [Choice(labels[needed], tuple(targets), needed) for needed, targets in grouped.items()]


def _rank(package: GpuPackage, target: str) -> tuple[int, int, str]:
    kind, name = classify_word(package.word)
    relabeled = kind == "target" and name != target
    return (1 if relabeled else _RANKS[kind]), len(package.targets), package.word


_LICENSE_FILE = "LICENSE"
_DESCRIPTION = """\
Requires the packages for this machine's GPU, and contains no files itself. Its wheels are wheel variants, a draft
({drafts}). Installers that support variants choose the wheel for the GPU. All other installers choose the wheel that
requires the packages for every GPU.
"""


class SelectingWheel(msgspec.Struct, frozen=True):
    """A wheel that contains only metadata."""

    name: WheelName
    metadata: CoreMetadata
    texts: dict[str, str]
    """The license and, except in the plain wheel, ``variant.json``, keyed by name in ``.dist-info``."""

    @property
    def files(self) -> dict[str, bytes]:
        """All files of the wheel's ``.dist-info`` folder except RECORD, keyed by name."""
        others = {name: text.encode() for name, text in self.texts.items()}
        return metadata_files(self.metadata, self.name.tag, is_purelib=True, entry_points={}, others=others)


def make_selecting_wheels(packages: Iterable[GpuPackage], license_text: str) -> list[SelectingWheel]:
    """Return selecting wheels for each name, version, and machine of packages: one per GPU, and two fallbacks.

    The null variant is for machines where an installer finds none of the GPUs. It has the requirements that all
    packages share. The plain wheel is for installers without variant support. It requires all packages.
    ``license_text`` is the MIT license, which covers all content of the selecting wheels.
    """
    groups: dict[tuple[str, ...], list[GpuPackage]] = defaultdict(list)
    for package in packages:
        key = (package.base, package.version, *package.machine)
        groups[key].append(package)
    own = {f"licenses/{_LICENSE_FILE}": license_text}
    return [wheel for key in sorted(groups) for wheel in _make_group(groups[key], own)]


def _make_group(packages: Sequence[GpuPackage], own: dict[str, str]) -> Iterator[SelectingWheel]:
    choices = make_choices(packages)
    for choice in choices:
        requires = tuple(package.pin for package in choice.packages)
        texts = own | _variant_text(choice.label, choice.targets)
        yield _make_wheel(choice.packages, requires, texts, choice.label)
    needed = [package for choice in choices for package in choice.packages]
    null = load_draft().names.null_label
    yield _make_wheel(needed, _common_requirements(needed), own | _variant_text(null, ()), null)
    yield _make_wheel(needed, tuple(dict.fromkeys(package.pin for package in needed)), own)


def _variant_text(label: str, values: Sequence[str]) -> dict[str, str]:
    return {load_draft().names.in_wheel: render_metadata(make_metadata(label, values, _known_targets())).decode()}


def _make_wheel(
    packages: Sequence[GpuPackage], requires: tuple[str, ...], texts: dict[str, str], label: str = ""
) -> SelectingWheel:
    first = packages[0]
    newest = max(packages, key=lambda package: package.age)
    metadata = CoreMetadata(
        first.base,
        first.version,
        f"The {first.base} packages for this machine's GPU (wheel variants, a draft)",
        requires_python=first.requires_python,
        license_expression="MIT",
        license_files=(_LICENSE_FILE,),
        requires=requires,
        description=_DESCRIPTION.format(drafts=" and ".join(load_draft().drafts)),
    )
    return SelectingWheel(WheelName(first.base, first.version, "-".join(newest.tags), label), metadata, texts)


def _common_requirements(packages: Sequence[GpuPackage]) -> tuple[str, ...]:
    """Return the requirements that all packages have in common, without extras."""
    others = [set(package.requires) for package in packages]
    return tuple(text for text in packages[0].requires if "extra" not in text and set.intersection(*others) >= {text})


def _known_targets() -> list[str]:
    """Return the same targets for every package and build, so that adding a GPU doesn't change any wheel."""
    grammar = load_draft().grammar
    names = (target.name for target in load_catalog().targets)
    return sorted((name for name in names if grammar.has("value", name)), key=sort_key)


def plan_variants(wheels: Iterable[PlannedWheel]) -> list[PlannedWheel]:
    """Return the selecting wheels for all ``wheels`` that are for single GPUs.

    Raises `InputError` if there are no such wheels.
    """
    selecting = make_selecting_wheels(_packages(wheels), sdk_license())
    if not selecting:
        option, found = "--variants", "there are no packages for single GPUs"
        expected = "packages for single targets or families"
        raise InputError(option, found, expected=expected, remedy="Try --split-device.")
    return [
        PlannedWheel("variants", made.name, made.metadata, (), info_texts=made.texts, is_purelib=True)
        for made in selecting
    ]


def _packages(wheels: Iterable[PlannedWheel]) -> Iterator[GpuPackage]:
    for wheel in wheels:
        name = None if wheel.folder else split_distribution(wheel.name.distribution)
        if name is not None:
            python, abi, platform = wheel.name.tag.split("-")
            declared = tuple(dict.fromkeys(map(processor_of, wheel.targets)))
            metadata = wheel.metadata
            yield GpuPackage(
                *name,
                wheel.name.version,
                (python, abi, platform),
                declared,
                metadata.requires,
                metadata.requires_python,
            )


def list_wheels(dist_dir: Path) -> list[Path]:
    """Return the wheels in a folder, sorted by name. Raises `InputError` if the folder can't be listed."""
    try:
        paths = sorted(path for path in dist_dir.iterdir() if path.suffix == ".whl" and not path.name.startswith("."))
    except OSError as e:
        raise read_error(dist_dir, e, remedy="Specify the folder that contains the wheels and sdists.") from e
    return [path for path in paths if is_wheel_file_name(path.name)]


def read_packages(dist_dir: Path) -> list[GpuPackage]:
    """Return the packages in a folder whose names end with a GPU.

    Raises `InputError` if a wheel can't be read, or `ProblemsError` for several wheels.
    """
    wheels = [path for path in list_wheels(dist_dir) if not split_wheel_file_name(path.name).label]
    named = [(path, name) for path in wheels if (name := split_distribution(name_and_version(path.name)[0]))]
    return map_collecting(str(dist_dir), lambda one: _read(*one), named)


def _read(path: Path, name: tuple[str, str]) -> GpuPackage:
    members = {member.name: member for member in read_directory(path)}
    try:
        metadata = parse_core_metadata(read_member(members[find_metadata(path, members)]))[0]
    except CoreMetadataError as e:
        raise InputError(path, f"has metadata that can't be read: {e}") from e
    place, declared = f"{find_dist_info(path, members)}/{DECLARATION_NAME}", {}
    if place in members:
        declaration = decode_declaration(read_member(members[place]), source=f"{path}!{place}")
        declared = dict.fromkeys(target.processor for target in declaration.targets)
    return GpuPackage(
        *name,
        name_and_version(path.name)[1],
        split_wheel_file_name(path.name).tags,
        tuple(declared),
        tuple(metadata.get("requires_dist", ())),
        metadata.get("requires_python", ""),
    )


class NoGpuPackagesError(InputError):
    """A folder has no packages for single GPUs."""

    def __init__(self, dist_dir: Path) -> None:
        expected = "packages whose names end with a GPU, such as rocm-sdk-device-gfx942"
        super().__init__(dist_dir, "contains no packages for single GPUs", expected=expected)


class AddedVariants(msgspec.Struct, frozen=True):
    """The file names of selecting wheels."""

    wheels: tuple[str, ...]
    """All selecting wheels for the packages in the folder."""
    written: tuple[str, ...]
    """The selecting wheels that were missing or different before."""
    stale: tuple[str, ...]
    """Existing selecting wheels of the same distributions, for GPUs that no longer have packages."""


class PlannedVariants(msgspec.Struct, frozen=True):
    """The selecting wheels for a folder's packages before they are written."""

    dist_dir: Path
    selecting: tuple[SelectingWheel, ...]
    stale: tuple[str, ...]
    """See `AddedVariants`."""

    @property
    def files(self) -> dict[str, dict[str, bytes]]:
        """The contents of each wheel, keyed by the wheel's file name and then by the name in ``.dist-info``."""
        return {wheel.name.file_name: wheel.files for wheel in self.selecting}


def add_variants(dist_dir: Path) -> AddedVariants:
    """Write the selecting wheels for the packages for single GPUs in ``dist_dir``.

    Existing wheels that are identical stay unchanged.

    Raises the same errors as `plan_added`, and `WorkError` if a wheel can't be written.
    """
    return write_added(plan_added(dist_dir))


def plan_added(dist_dir: Path) -> PlannedVariants:
    """Return the selecting wheels for the packages for single GPUs in ``dist_dir`` without writing them.

    Raises `NoGpuPackagesError` for a folder without such packages. Raises `InputError`, or `ProblemsError` for several,
    if a wheel can't be read or another distribution has the name of a selecting wheel.
    """
    selecting = make_selecting_wheels(read_packages(dist_dir), sdk_license())
    if not selecting:
        raise NoGpuPackagesError(dist_dir)
    names = {wheel.name.file_name for wheel in selecting}
    own = {(wheel.metadata.name, wheel.name.stem.partition("-")[2]) for wheel in selecting}
    names_of_others = {path: name_and_version(path.name) for path in list_wheels(dist_dir) if path.name not in names}
    others = [path for path, (name, version) in names_of_others.items() if (canonicalize_name(name), version) in own]
    standing = [dist_dir / name for name in sorted(names) if (dist_dir / name).exists()]
    raise_all(str(dist_dir), list(_find_strangers([*others, *standing])))
    return PlannedVariants(dist_dir, tuple(selecting), tuple(path.name for path in others))


def write_added(planned: PlannedVariants) -> AddedVariants:
    """Write the planned wheels that are missing or different. Raises `WorkError` if a wheel can't be written."""
    dist_dir = planned.dist_dir
    remove_abandoned(dist_dir)
    moment = SourceDate.from_environment(os.environ)
    written = sorted(wheel.name.file_name for wheel in planned.selecting if _write(wheel, dist_dir, moment))
    return AddedVariants(tuple(sorted(planned.files)), tuple(written), planned.stale)


def find_clashes(plans: Iterable[PlannedVariants], dist_dirs: Sequence[Path]) -> Iterator[InputError]:
    """Yield an error for each planned wheel that differs from another wheel with the same name in the same index.

    ``dist_dirs`` are the folders of that index. Installers can use only one file with a given name. Raises `InputError`
    if an existing wheel can't be read.
    """
    planned = {plan.dist_dir: plan.files for plan in plans}
    for name in sorted({name for folder in dist_dirs for name in planned.get(folder, {})}):
        held = {folder: planned.get(folder, {}).get(name) for folder in dist_dirs}
        standing = [folder for folder in dist_dirs if held[folder] is None and (folder / name).exists()]
        held |= {folder: _read_files(folder / name) for folder in standing}
        first, *others = [folder for folder, files in held.items() if files is not None]
        base = canonicalize_name(name_and_version(name)[0])
        remedy = f"Keep the {base} packages for all of these GPUs in one folder."
        found = f"would require different packages than {first / name}, which is in the same index"
        for folder in others:
            if held[folder] != held[first]:
                yield InputError(folder / name, found, expected="only one wheel with this name", remedy=remedy)


def _find_strangers(paths: Sequence[Path]) -> Iterator[InputError]:
    """Yield an error for each wheel that contains files, because selecting wheels contain only metadata."""
    for path in paths:
        members = [member.name for member in read_directory(path)]
        info = find_dist_info(path, members)
        if any(not name.startswith(f"{info}/") for name in members):
            found = "contains files, but has the name of a wheel that only selects packages for a GPU"
            yield InputError(path, found, expected="no distribution with this name and version")


def _write(wheel: SelectingWheel, dist_dir: Path, moment: SourceDate) -> bool:
    """Write a wheel unless an identical wheel exists. Return whether it was written."""
    path = dist_dir / wheel.name.file_name
    if path.exists() and _read_files(path) == wheel.files:
        return False
    writer = WheelWriter(path, wheel.name.dist_info, moment.zip_time)
    try:
        writer.close(wheel.files)
    except BaseException:
        writer.abort()
        raise
    return True


def _read_files(path: Path) -> dict[str, bytes]:
    members = {member.name.partition("/")[2]: read_member(member) for member in read_directory(path)}
    return {name: data for name, data in members.items() if name != "RECORD"}


def add_to_all(groups: Collection[Sequence[Path]]) -> Iterator[tuple[Path, AddedVariants]]:
    """Write the variant wheels in all folders with packages for single GPUs, and yield the results for each folder.

    Each of the ``groups`` contains the folders of one index. All wheels are planned before the first one is written.
    Raises `InputError`, or `ProblemsError` for several errors, if no folder contains packages for single GPUs. Raises
    the same errors if two wheels in an index would have the same name, and whenever `add_variants` raises them.
    """
    problems: list[RocwheelError] = []
    planned = attempt_all(plan_added, dict.fromkeys(chain.from_iterable(groups)), problems)
    others = [problem for problem in problems if not isinstance(problem, NoGpuPackagesError)]
    raise_all("--variants", others if planned or others else problems)
    clashes = {str(problem): problem for group in groups for problem in find_clashes(planned, group)}
    raise_all("--variants", list(clashes.values()))
    for one in planned:
        yield one.dist_dir, write_added(one)
