"""Promotes release candidates to a release. Packed members are copied, except for a few changed files.

Each distribution gets a new file name. Only files that state the version or list removed GPU targets change.
"""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.artifacts.sdk_files import DIST_INFO_PATH, declared_targets, with_declared_targets
from rocwheel.build.placement import canonical_order
from rocwheel.build.planning.selector import refusing_extras, requires_txt, selector_requirements
from rocwheel.build.promoting.candidates import (
    BUILD_INFO,
    Candidate,
    VersionChange,
    read_build_info,
    read_candidates,
    says_version,
)
from rocwheel.build.sdk_source import render_literals
from rocwheel.core.errors import InputError, write_error
from rocwheel.core.messages import count, shortened
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.scratch import scratch_folder
from rocwheel.core.workers import map_collecting, open_workers, raise_all, worker_count
from rocwheel.core.writing import check_destination, safe_mode
from rocwheel.environment.check_record import wheel_record_problems
from rocwheel.environment.coherence import WheelFacts, check_coherence, wheel_package_targets
from rocwheel.environment.tree import Distribution, InstalledFile
from rocwheel.targets.declaration import DECLARATION_NAME, Declaration, decode_declaration, encode_declaration
from rocwheel.wheels.content import BytesContent
from rocwheel.wheels.metadata import parse_core_metadata, set_values
from rocwheel.wheels.record import parse_record, unhashed_paths
from rocwheel.wheels.requirements import RequirementError, is_refusing, read_requirement, readable_requirements
from rocwheel.wheels.sbom import SBOM_NAME
from rocwheel.wheels.sdist import SourceDate, write_sdist
from rocwheel.wheels.writing import write_wheels
from rocwheel.wheels.zip_directory import read_directory
from rocwheel.wheels.zip_reader import digest_member, read_member

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor


class PromotedDistribution(msgspec.Struct, frozen=True):
    """A distribution with its new version: the paths of its old and new files, and the new file's size in bytes."""

    source: str
    path: str
    size: int


class PromotionResult(msgspec.Struct, frozen=True):
    """The results of a promotion."""

    old_version: str
    version: str
    distributions: tuple[PromotedDistribution, ...]
    left_out: tuple[str, ...] = ()
    """The paths of candidates that were left out because their targets were dropped."""
    targets: tuple[str, ...] = ()
    """The remaining targets of the selector, if some were dropped."""


class PromoteJob(msgspec.Struct, frozen=True):
    """The candidates to promote, their new version, and the destination."""

    dist: Path
    to: str
    dest_dir: Path
    targets: tuple[str, ...] = ()
    """The processors whose packages are kept; empty for all."""
    jobs: int = 0
    """The number of workers, or 0 for one per core."""

    def run(self, *, progress: Progress = SILENT) -> PromotionResult:
        """Write all distributions or none. Their date comes from ``SOURCE_DATE_EPOCH``.

        Before anything is written, raises `InputError`, or `ProblemsError` with all errors. Raises the same errors for
        damaged files. Raises `ChangedFileError` if a file changes in the meantime, and `WorkError` if writing fails.
        """
        check_destination(self.dest_dir)
        workers = worker_count(self.jobs)
        version = checked_version(self.to)
        sets = read_candidates(self.dist)
        candidates = [candidate for packages in sets.values() for candidate in packages]
        old = check_versions(self.dist, candidates, version)
        kept = self._kept(sets)
        change = VersionChange(old, version)
        promotions: list[Promotion] = []
        for folder, packages in sets.items():
            left = kept[folder]
            promotions += promote_set(packages, change, left) if left is None or left.families else []
        check_output(self.dist, self.dest_dir, [promotion.place for promotion in promotions])
        self._write(promotions, workers, progress)
        paths = {promotion.candidate.path: self.dest_dir / promotion.place for promotion in promotions}
        made = [PromotedDistribution(str(source), str(new), new.stat().st_size) for source, new in paths.items()]
        left_out = tuple(str(candidate.path) for candidate in candidates if candidate.path not in paths)
        families = tuple(dict.fromkeys(family for one in kept.values() if one for family in one.families))
        return PromotionResult(old, version, tuple(made), left_out, families)

    def _kept(self, sets: Mapping[str, Sequence[Candidate]]) -> dict[str, KeptTargets | None]:
        """Return the targets to keep, keyed by folder. `None` means all targets."""
        if not self.targets:
            return dict.fromkeys(sets)
        selectors = {folder: next((one for one in packages if one.info), None) for folder, packages in sets.items()}
        infos = {folder: selector.info for folder, selector in selectors.items() if selector}
        if not infos:
            found, expected = "has no selector", "a rocm sdist or wheel, which maps GPUs to packages"
            raise InputError(self.dist, found, expected=expected, remedy="Promote the folder without --targets.")
        offered = {target for info in infos.values() for row in info["FAMILIES"].values() for target in row["targets"]}
        absent = [target for target in self.targets if target not in offered]
        if absent:
            option, found = "--targets", f"{self.dist} has no packages for {', '.join(absent)}"
            raise InputError(option, found, expected=f"targets with packages: {', '.join(canonical_order(offered))}")
        kept = {folder: KeptTargets.among(info, self.targets) for folder, info in infos.items()}
        shared = KeptTargets.together(kept.values())
        return {folder: kept.get(folder, shared) for folder in sets}

    def _write(self, promotions: Sequence[Promotion], workers: int, progress: Progress) -> None:
        """Write everything into a hidden folder, then move all of it into place."""
        date = SourceDate.from_environment(os.environ)
        total = sum(member.size for one in promotions for member in one.candidate.members.values())
        with (
            self._made_folder(),
            open_workers(workers) as executor,
            scratch_folder(self.dest_dir / "promoted") as folder,
        ):
            progress.begin(f"promoting {self.dist.name}", total)

            def write(one: Promotion) -> Path:
                return write_promoted(one, folder, executor, date, progress)

            map_collecting(str(self.dist), write, promotions)
            progress.end()
            self._put_in_place(folder, [promotion.place for promotion in promotions])

    @contextmanager
    def _made_folder(self) -> Iterator[None]:
        """Create the destination, and remove it if it is new and stays empty."""
        is_new = not self.dest_dir.exists()
        try:
            self.dest_dir.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as e:
            raise write_error(self.dest_dir, e, remedy="Check the free space and the folder's permissions.") from e
        finally:
            if is_new:
                # This removes the folder only if it is empty.
                with suppress(OSError):
                    self.dest_dir.rmdir()

    def _put_in_place(self, folder: Path, places: Sequence[str]) -> None:
        done: list[Path] = []
        made: list[Path] = []
        try:
            for place in places:
                path = self.dest_dir / place
                if not path.parent.exists():
                    path.parent.mkdir()
                    made.append(path.parent)
                (folder / place).rename(path)
                done.append(path)
        except BaseException:
            for path in done:
                path.unlink()
            for path in made:
                path.rmdir()
            raise


_OPTION = "--to"


def checked_version(text: str) -> str:
    """Return the requested version in normalized form. Raises `InputError` if it doesn't follow :pep:`440`."""
    try:
        return str(Version(text))
    except ValueError as e:
        raise InputError(_OPTION, f"is {text!r}", expected="a PEP 440 version, such as 7.2.0") from e


def check_versions(dist: Path, candidates: Sequence[Candidate], new: str) -> str:
    """Return the version that all candidates have, which is lower than ``new``.

    Raises `InputError`, or `ProblemsError` with all errors, if the candidates have several versions, the new version,
    or a later version.
    """
    by_version: defaultdict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_version[candidate.version].append(candidate)
    problems = []
    if len(by_version) > 1:
        listed = "; ".join(f"{version}: {_names(group)}" for version, group in by_version.items())
        remedy = "Keep the files of one version in the folder, and move the others."
        problems.append(InputError(dist, f"contains several versions: {listed}", expected="one version", remedy=remedy))
    for version, group in by_version.items():
        if Version(version) == Version(new):
            found = f"is {new}, which {_names(group)} in {dist} already {'has' if len(group) == 1 else 'have'}"
            problems.append(InputError(_OPTION, found, expected="a version that no candidate has"))
        elif Version(version) > Version(new):
            found = f"is {new}, which is lower than {version}, the version of {_names(group)}"
            expected = "a later version, because installers would prefer the candidates"
            problems.append(InputError(_OPTION, found, expected=expected))
    raise_all(str(dist), problems)
    return next(iter(by_version))


def _names(group: Sequence[Candidate]) -> str:
    names = [candidate.path.name for candidate in group]
    return ", ".join(names) if len(names) < 4 else f"{', '.join(names[:2])} and {count(len(names) - 2, 'other file')}"


def check_output(dist: Path, dest_dir: Path, places: Collection[str]) -> None:
    """Raise `InputError`, or `ProblemsError`, if an output would be among the candidates or replace another file."""
    if dest_dir.resolve().is_relative_to(dist.resolve()):
        found = "contains the candidates" if dest_dir.resolve() == dist.resolve() else f"is a folder in {dist}"
        raise InputError(dest_dir, found, expected=f"a folder outside of {dist}", remedy="Change --output.")
    taken = [dest_dir / place for place in places if (dest_dir / place).exists() or (dest_dir / place).is_symlink()]
    remedy = "Remove the file, or choose another --output."
    problems = [InputError(path, "already exists", expected="no file with this name", remedy=remedy) for path in taken]
    raise_all(str(dest_dir), problems)


def write_promoted(
    promotion: Promotion, folder: Path, executor: Executor, source_date: SourceDate, progress: Progress
) -> Path:
    """Write a distribution to its place below ``folder``, and return the path.

    Raises `InputError`, or `ProblemsError`, for damaged members, and for a wheel whose RECORD doesn't match its
    members. Otherwise, the new RECORD would hide that the files were modified.
    """
    path = folder / promotion.place
    if promotion.dist_info:
        _write_wheel(promotion, path, executor, source_date, progress)
        _check_record(promotion, path)
    else:
        stem = path.name.removesuffix(".tar.gz")
        write_sdist(path, stem, {**promotion.candidate.files, **promotion.changed}, mtime=source_date.seconds)
    return path


def _write_wheel(
    promotion: Promotion, path: Path, executor: Executor, source_date: SourceDate, progress: Progress
) -> None:
    candidate = promotion.candidate
    left_out = unhashed_paths(candidate.dist_info)
    # The wheel format recommends .dist-info at the end of the archive. SBOMs are part of .dist-info.
    at_end = (candidate.dist_info, f"{candidate.dist_info}/{SBOM_NAME.partition('/')[0]}")
    metadata: dict[str, bytes] = {}
    with write_wheels(executor, source_date.zip_time, progress=progress) as packer:
        wheel = packer.open(path, dist_info=promotion.dist_info)
        for member in candidate.members.values():
            if member.name in left_out:
                continue
            changed = promotion.changed.get(member.name)
            if member.name.rpartition("/")[0] in at_end:
                metadata[member.name.partition("/")[2]] = read_member(member) if changed is None else changed
            elif changed is None:
                renamed = msgspec.structs.replace(member, name=promotion.renamed(member.name))
                wheel.add_packed(renamed, safe_mode(member.mode))
            else:
                wheel.add(promotion.renamed(member.name), safe_mode(member.mode), BytesContent(changed))
        wheel.close(metadata)


def _check_record(promotion: Promotion, path: Path) -> None:
    """Compare the old RECORD with the old members. The new RECORD has the digests of the copied members."""
    candidate = promotion.candidate
    source = str(candidate.path)
    old = candidate.members.get(f"{candidate.dist_info}/RECORD")
    if old is None:
        raise InputError(
            source, "has no RECORD", expected="a wheel with exactly one RECORD", remedy="Build the wheel again."
        )
    owner = Distribution(
        name=candidate.name,
        version=candidate.version,
        source=source,
        dist_info=candidate.dist_info,
        record=parse_record(read_member(old), old.source),
    )
    problems = [
        InputError(source, problem.found, remedy="The wheel is damaged. Build or download it again.")
        for problem in wheel_record_problems(owner, _old_files(promotion, path))
        if problem.kind not in {"spelling", "algorithm"}
    ]
    raise_all(source, problems)


def _old_files(promotion: Promotion, path: Path) -> Iterator[InstalledFile]:
    candidate = promotion.candidate
    source = str(candidate.path)
    record = f"{promotion.dist_info}/RECORD"
    text = next(read_member(member) for member in read_directory(path) if member.name == record)
    written = {entry.path: entry.digest for entry in parse_record(text, record)}
    for name, member in candidate.members.items():
        copied = b"" if name in promotion.changed else written.get(promotion.renamed(name))
        sha256 = copied or digest_member(member).sha256
        yield InstalledFile(path=name, distribution=source, source=f"{source}!{name}", size=member.size, sha256=sha256)


class KeptTargets(msgspec.Struct, frozen=True):
    """The families of a set that are kept. Create it with `among`, because the constructor checks nothing."""

    families: tuple[str, ...]
    """The kept targets or families, with the names that the selector uses."""
    dropped: frozenset[str]
    """The normalized names of the distributions for dropped targets."""
    served: frozenset[str]
    """The targets that the kept families serve."""
    dropped_targets: frozenset[str]
    """The targets that only dropped families serve."""

    @classmethod
    def among(cls, info: Mapping[str, Any], processors: Collection[str]) -> KeptTargets:
        """Return the families to keep for these processors, possibly an empty tuple.

        ``info`` contains the selector's literals.
        """
        served = {name: frozenset(row["targets"]) for name, row in info["FAMILIES"].items()}
        kept = tuple(name for name, targets in served.items() if targets & set(processors))
        names = [row["dist"] for row in info["PACKAGES"].values() if "{family}" in row["dist"]]
        gone = [name.replace("{family}", family) for name in names for family in served.keys() - set(kept)]
        left = _united(served[name] for name in kept)
        return cls(kept, frozenset(map(canonicalize_name, gone)), left, _united(served.values()) - left)

    @classmethod
    def together(cls, parts: Collection[KeptTargets]) -> KeptTargets:
        """Return the families to keep in packages that several sets share."""
        families = tuple(dict.fromkeys(family for part in parts for family in part.families))
        served = _united(part.served for part in parts)
        gone = _united(part.dropped_targets for part in parts)
        return cls(families, _united(part.dropped for part in parts), served, gone - served)

    def build_info(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the selector's literals without dropped targets. From now on, extras refuse these targets by name."""
        default = values["DEFAULT_FAMILY"]
        if default not in self.families:
            default = self.families[0] if len(self.families) == 1 else ""
        families = {name: values["FAMILIES"][name] for name in self.families}
        changed = {**values, "FAMILIES": families, "DEFAULT_FAMILY": default}
        if "BY_PLATFORM" in values:
            changed["BY_PLATFORM"] = {name: self._own_facts(facts) for name, facts in values["BY_PLATFORM"].items()}
        extras: dict[str, list[list[str]]] = {}
        served = {name: row["targets"] for name, row in changed["FAMILIES"].items()}
        for extra, rows in changed["EXTRAS"].items():
            left = [row for row in rows if not self._is_dropped(row[0])]
            if left or not rows:
                extras[extra] = left
            prefix = extra.removesuffix("-all")
            if prefix != extra and changed["LAYOUT"] == "neutral" and rows:
                extras |= refusing_extras(prefix, changed["REQUIRES"][0], served)
        return {**changed, "EXTRAS": extras}

    def _own_facts(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the literals for a platform without dropped targets."""
        families = facts.get("FAMILIES")
        kept = {"FAMILIES": {name: families[name] for name in self.families}} if families else {}
        return {**facts, **kept}

    def _is_dropped(self, text: str) -> bool:
        """Return whether a requirement is for a dropped package or refuses a target.

        Refusing requirements are recreated later.
        """
        found = readable_requirements([text])
        return any(is_refusing(item) or canonicalize_name(item.name) in self.dropped for item in found)

    def metadata(self, data: bytes, info: Mapping[str, Any], source: str) -> bytes:
        """Return the METADATA of the selector wheel with the requirements from its literals ``info``.

        Raises `InputError` about ``source`` for an invalid requirement.
        """
        try:
            requires = [str(read_requirement(text)) for text in selector_requirements(info)]
        except RequirementError as e:
            found = f"has an invalid requirement ({shortened(str(e))})"
            raise InputError(source, found, remedy="Build the packages again.") from e
        return set_values(set_values(data, "Requires-Dist", requires), "Provides-Extra", list(info["EXTRAS"]))

    def dist_info(self, data: bytes, source: str, declared: Iterable[str]) -> bytes:
        """Return the core's list of targets without targets that neither a kept package nor ``declared`` has."""
        gone = self.dropped_targets - set(declared)
        left = [target for target in declared_targets(source, data) if target not in gone]
        return with_declared_targets(source, data, left)


def _united(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


class Promotion(msgspec.Struct, frozen=True):
    """A distribution that is being promoted: its candidate, its new path, and its changed files."""

    candidate: Candidate
    place: str
    """The path of the new file below the destination."""
    dist_info: str
    """The name of the wheel's new ``.dist-info`` folder; empty for an sdist."""
    changed: dict[str, bytes]
    """The new content of changed files, keyed by their old path in the distribution."""

    def renamed(self, member: str) -> str:
        """Return the new path of a wheel's member.

        The names of ``.dist-info`` and ``.data`` folders contain the version.
        """
        old, new = self.candidate.dist_info.removesuffix(".dist-info"), self.dist_info.removesuffix(".dist-info")
        top, slash, rest = member.partition("/")
        return f"{new}{top.removeprefix(old)}{slash}{rest}" if top in {f"{old}.dist-info", f"{old}.data"} else member


def promote_set(packages: Sequence[Candidate], change: VersionChange, kept: KeptTargets | None) -> list[Promotion]:
    """Return the promotions of a set's kept distributions.

    Raises `InputError` for files that can't be read, and for wheels of the same package with different code.
    """
    stay = [one for one in packages if kept is None or canonicalize_name(one.name) not in kept.dropped]
    places = {one.path: one.members.get(f"{one.dist_info}/{DECLARATION_NAME}") for one in stay} if kept else {}
    declarations = {
        path: decode_declaration(read_member(member), source=member.source) for path, member in places.items() if member
    }
    declared = {target.processor for found in declarations.values() for target in found.targets}
    made = [_promote(one, change, kept, declared) for one in stay]
    wheels = [promotion for promotion in made if promotion.dist_info and not promotion.candidate.info]
    # Packages that several sets share were already compared within each set.
    has_selector = any(one.info for one in packages)
    if kept and has_selector and all(promotion.candidate.path in declarations for promotion in wheels):
        # Make the wheels record how the remaining wheels fit together, in the previous order.
        compared = next((found.coherence.packages for found in declarations.values() if found.coherence), ())
        order = {name: number for number, name in enumerate(compared)}
        ordered = sorted(wheels, key=lambda wheel: order.get(wheel.candidate.name, len(order)))
        facts = [_facts(wheel, declarations[wheel.candidate.path]) for wheel in ordered]
        report = check_coherence(wheel_package_targets(facts))
        for wheel, known in zip(ordered, facts, strict=True):
            name = f"{wheel.candidate.dist_info}/{DECLARATION_NAME}"
            wheel.changed[name] = encode_declaration(known.targets, report.recorded if known.targets else None)
    return made


def _promote(candidate: Candidate, change: VersionChange, kept: KeptTargets | None, declared: set[str]) -> Promotion:
    # These files may state the version or list targets.
    if not candidate.is_wheel:
        texts = {name: data for name, data in candidate.files.items() if name == "PKG-INFO" or says_version(name)}
    else:
        own = f"{candidate.dist_info}/METADATA"
        members = candidate.members.items()
        found = {name: member for name, member in members if says_version(name) or name.endswith(f"/{DIST_INFO_PATH}")}
        texts = {name: read_member(member) for name, member in {**found, own: candidate.members[own]}.items()}
    changed = {name: change.text(name, data) if says_version(name) else data for name, data in texts.items()}
    metadata = f"{candidate.dist_info}/METADATA" if candidate.is_wheel else "PKG-INFO"
    changed[metadata] = change.metadata(texts[metadata])
    if kept:
        _narrow(candidate, changed, metadata, kept, declared)
    changed = {name: data for name, data in changed.items() if data != texts[name]}
    dist_info = _versioned(candidate.dist_info.removesuffix(".dist-info"), change) + ".dist-info"
    return Promotion(candidate, _place(candidate, change), dist_info if candidate.is_wheel else "", changed)


def _narrow(
    candidate: Candidate, changed: dict[str, bytes], metadata: str, kept: KeptTargets, declared: set[str]
) -> None:
    """Remove the dropped targets from the files in ``changed``."""
    for name, data in list(changed.items()):
        if name.endswith(f"/{DIST_INFO_PATH}"):
            changed[name] = kept.dist_info(data, name, declared)
        elif candidate.info and name.rpartition("/")[2] == BUILD_INFO:
            info = kept.build_info(read_build_info(data, name))
            changed[name] = render_literals(info).encode()
            if candidate.is_wheel:
                changed[metadata] = kept.metadata(changed[metadata], info, f"{candidate.path}!{name}")
            else:
                listed = [path for path in changed if path.endswith(".egg-info/requires.txt")]
                changed.update(dict.fromkeys(listed, requires_txt(info).encode()))


def _place(candidate: Candidate, change: VersionChange) -> str:
    prefix = f"{candidate.folder}/" if candidate.folder else ""
    if not candidate.is_wheel:
        return f"{prefix}{_versioned(candidate.path.name.removesuffix('.tar.gz'), change)}.tar.gz"
    distribution, _, *rest = candidate.path.name.split("-")
    return f"{prefix}{'-'.join([distribution, change.new, *rest])}"


def _versioned(stem: str, change: VersionChange) -> str:
    """Return ``NAME-VERSION`` with the new version."""
    return f"{stem.rpartition('-')[0]}-{change.new}"


def _facts(wheel: Promotion, declaration: Declaration) -> WheelFacts:
    metadata = parse_core_metadata(wheel.changed[f"{wheel.candidate.dist_info}/METADATA"])[0]
    tops = {name.partition("/")[0] for name in wheel.candidate.members}
    roots = frozenset(top for top in tops if not top.endswith((".dist-info", ".data")))
    requires = tuple(metadata.get("requires_dist", ()))
    return WheelFacts(wheel.place, canonicalize_name(wheel.candidate.name), requires, declaration.targets, roots)
