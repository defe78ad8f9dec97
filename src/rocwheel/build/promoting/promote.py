"""Promotes release candidates to a release. Packed members are copied, except for a few changed files.

Each distribution gets a new file name, unless the version doesn't change. Only files that state the version or list
removed GPU targets change.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.artifacts.sdk_files import DIST_INFO_PATH
from rocwheel.build.placement import canonical_order
from rocwheel.build.planning.selector import requires_txt
from rocwheel.build.promoting.candidates import BUILD_INFO, Candidate, read_build_info, read_candidate, read_candidates
from rocwheel.build.promoting.kept_targets import HostExtras, KeptTargets, host_extras
from rocwheel.build.promoting.versions import (
    VersionChange,
    find_broken,
    find_leftovers,
    required_sdk_versions,
    rocm_version,
    says_version,
)
from rocwheel.build.sdk_source import render_literals
from rocwheel.core.errors import InputError, write_error
from rocwheel.core.messages import count
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.scratch import locked_folder, scratch_folder
from rocwheel.core.workers import map_collecting, map_in_threads, open_workers, raise_all, worker_count
from rocwheel.core.writing import check_destination, safe_mode
from rocwheel.environment.coherence import WheelFacts, check_coherence, wheel_package_targets
from rocwheel.targets.declaration import DECLARATION_NAME, Declaration, decode_declaration, encode_declaration
from rocwheel.wheels.checking import check_members
from rocwheel.wheels.content import BytesContent
from rocwheel.wheels.metadata import parse_core_metadata
from rocwheel.wheels.record import unhashed_paths
from rocwheel.wheels.sbom import SBOM_NAME
from rocwheel.wheels.sdist import SourceDate, write_sdist
from rocwheel.wheels.writing import write_wheels
from rocwheel.wheels.zip_reader import read_member

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from rocwheel.wheels.content import Digest
    from rocwheel.wheels.zip_reader import ZipMember


class PromotedDistribution(msgspec.Struct, frozen=True):
    """A distribution with its new version: the paths of its old and new files, and the new file's size in bytes."""

    source: str
    path: str
    size: int


class PromotionResult(msgspec.Struct, frozen=True):
    """The results of a promotion. The versions are ROCm versions, which frameworks include in their local versions."""

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
    """The new version of ROCm, or an empty string to keep the version and only drop targets."""
    dest_dir: Path
    targets: tuple[str, ...] = ()
    """The processors whose packages are kept. Empty means all."""
    jobs: int = 0
    """The number of workers, or 0 for one per core."""

    def run(self, *, progress: Progress = SILENT) -> PromotionResult:
        """Write all distributions or none. The date of the distributions comes from ``SOURCE_DATE_EPOCH``.

        Before anything is written, raises `InputError`, or `ProblemsError` with all errors, for invalid input. Raises
        the same errors later for damaged files. Raises `ChangedFileError` if a file changes in the meantime, and
        `WorkError` if writing fails.
        """
        check_destination(self.dest_dir)
        workers = worker_count(self.jobs)
        version = checked_version(self.to) if self.to else ""
        sets = read_candidates(self.dist)
        candidates = [candidate for packages in sets.values() for candidate in packages]
        old = check_versions(self.dist, candidates, version)
        version = version or old
        kept = self._kept(sets)
        change = VersionChange(old, version, frozenset(candidate.name for candidate in candidates))
        promotions: list[Promotion] = []
        for folder, packages in sets.items():
            left = kept[folder]
            promotions += promote_set(packages, change, left) if left is None or left.families else []
        check_result(self.dist, promotions, change)
        check_output(self.dist, self.dest_dir, [promotion.place for promotion in promotions])
        self._write(promotions, workers, progress)
        paths = {promotion.candidate.path: self.dest_dir / promotion.place for promotion in promotions}
        made = [PromotedDistribution(str(source), str(new), new.stat().st_size) for source, new in paths.items()]
        left_out = tuple(str(candidate.path) for candidate in candidates if candidate.path not in paths)
        families = tuple(dict.fromkeys(family for one in kept.values() if one for family in one.families))
        return PromotionResult(old, version, tuple(made), left_out, families)

    def _kept(self, sets: Mapping[str, Sequence[Candidate]]) -> dict[str, KeptTargets | None]:
        """Return the targets to keep, keyed by folder. `None` means all targets.

        Raises `InputError`, or `ProblemsError` with all errors, for targets that are missing from the selector or a
        framework.
        """
        if not self.targets:
            return dict.fromkeys(sets)
        selectors = {folder: next((one for one in packages if one.info), None) for folder, packages in sets.items()}
        infos = {folder: selector.info for folder, selector in selectors.items() if selector}
        extras = {one.path: host_extras(one) for packages in sets.values() for one in packages}
        hosts = {path: found for path, found in extras.items() if found.targets}
        if not infos and not hosts:
            found, expected = "has no selector", "a rocm sdist or wheel, which maps GPUs to packages"
            raise InputError(self.dist, found, expected=expected, remedy="Promote the folder without --targets.")
        rows = [row["targets"] for info in infos.values() for row in info["FAMILIES"].values()]
        offered = {target for targets in rows or [host.targets for host in hosts.values()] for target in targets}
        absent = [target for target in self.targets if target not in offered]
        if absent:
            option, found = "--targets", f"{self.dist} has no packages for {', '.join(absent)}"
            raise InputError(option, found, expected=f"targets with packages: {', '.join(canonical_order(offered))}")
        kept = {folder: KeptTargets.among(info, self.targets) for folder, info in infos.items()}
        shared = KeptTargets.together(kept.values()) if kept else KeptTargets.for_hosts(self.targets)
        without = {path: host for path, host in hosts.items() if not host.targets & shared.served}
        raise_all(str(self.dist), [_no_code(path, host, shared.served) for path, host in without.items()])
        gone = frozenset(name for host in hosts.values() for name in host.dropped_names(shared.served))
        full = {folder: kept.get(folder, shared) for folder in sets}
        return {folder: msgspec.structs.replace(one, dropped=one.dropped | gone) for folder, one in full.items()}

    def _write(self, promotions: Sequence[Promotion], workers: int, progress: Progress) -> None:
        """Write everything to a hidden folder, then move it to the destination."""
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
            places = [promotion.place for promotion in promotions]
            with locked_folder(self.dest_dir, silence=_SILENCE):
                check_output(self.dist, self.dest_dir, places)  # another promotion may have ended in the meantime
                self._put_in_place(folder, places)

    @contextmanager
    def _made_folder(self) -> Iterator[None]:
        """Create the destination, and remove it if it is new and remains empty."""
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
_SILENCE = 5.0
"""The number of seconds after which a promotion reports that it is waiting for another promotion."""


def _no_code(path: Path, host: HostExtras, kept: Collection[str]) -> InputError:
    found = f"has no device wheels for {', '.join(canonical_order(kept))}"
    expected = f"at least one of its targets: {', '.join(canonical_order(host.targets))}"
    return InputError(path, found, expected=expected, remedy="Change --targets, or move the wheel.")


def checked_version(text: str) -> str:
    """Return the requested version in normalized form. Raises `InputError` if it doesn't follow :pep:`440`."""
    try:
        return str(Version(text))
    except ValueError as e:
        raise InputError(_OPTION, f"is {text!r}", expected="a PEP 440 version, such as 7.2.0") from e


_INDEPENDENT = ("rocm-bootstrap",)
"""Distributions in AMD's indexes with a version that is unrelated to ROCm's. They are copied unchanged."""


def check_versions(dist: Path, candidates: Sequence[Candidate], new: str) -> str:
    """Return the version of ROCm that all candidates have. It is lower than ``new``, unless ``new`` is empty.

    Independent distributions are ignored unless there are no others.

    Raises `InputError`, or `ProblemsError` with all errors, if the candidates have several versions, the new version,
    or a later version.
    """
    by_version: defaultdict[str, list[Candidate]] = defaultdict(list)
    own = [candidate for candidate in candidates if candidate.name not in _INDEPENDENT] or candidates
    plain = {candidate.version for candidate in own if not rocm_version(candidate.version)}
    plain |= {version for candidate in own for version in required_sdk_versions(candidate)}
    for candidate in own:
        by_version[rocm_version(candidate.version, plain) or candidate.version].append(candidate)
    problems = []
    if len(by_version) > 1:
        listed = "; ".join(f"{version}: {_names(group)}" for version, group in by_version.items())
        remedy = "Keep the files of one version in the folder, and move the others."
        problems.append(InputError(dist, f"contains several versions: {listed}", expected="one version", remedy=remedy))
    for version, group in by_version.items() if new else ():
        if Version(version) == Version(new):
            found = f"is {new}, which {_names(group)} in {dist} already {'has' if len(group) == 1 else 'have'}"
            problems.append(InputError(_OPTION, found, expected="a version that no candidate has"))
        elif Version(version) > Version(new):
            found = f"is {new}, which is lower than {version}, the version of {_names(group)}"
            expected = "a later version, because installers would prefer the candidates"
            problems.append(InputError(_OPTION, found, expected=expected))
    frameworks = [candidate for candidate in own if rocm_version(candidate.version)]
    if new and frameworks and Version(new).epoch:
        found = f"is {new}, whose epoch can't be part of the version of {_names(frameworks)}"
        problems.append(InputError(_OPTION, found, expected="a version without an epoch, such as 7.2.0"))
    raise_all(str(dist), problems)
    return next(iter(by_version))


def check_result(dist: Path, promotions: Sequence[Promotion], change: VersionChange) -> None:
    """Raise `InputError`, or `ProblemsError` with all errors, if the packages would still state the old version.

    The same applies if the packages would no longer satisfy each other's requirements.
    """

    def leftovers(one: Promotion) -> list[InputError]:
        return list(find_leftovers(one.candidate, one.changed, change)) if one.dist_info else []

    found = map_in_threads(leftovers, promotions, str(dist))
    broken = find_broken([(one.candidate, one.metadata) for one in promotions], change)
    raise_all(str(dist), [*(problem for problems in found for problem in problems), *broken])


def _names(group: Sequence[Candidate]) -> str:
    names = [candidate.path.name for candidate in group]
    return ", ".join(names) if len(names) < 4 else f"{', '.join(names[:2])} and {count(len(names) - 2, 'other file')}"


def check_output(dist: Path, dest_dir: Path, places: Collection[str]) -> None:
    """Raise `InputError`, or `ProblemsError`, if an output would be among the candidates or replace another file."""
    if dest_dir.resolve().is_relative_to(dist.resolve()):
        found = "contains the candidates" if dest_dir.resolve() == dist.resolve() else f"is a folder in {dist}"
        raise InputError(dest_dir, found, expected=f"a folder outside {dist}", remedy="Change --output.")
    taken = [dest_dir / place for place in places if (dest_dir / place).exists() or (dest_dir / place).is_symlink()]
    remedy = "Remove the file, or choose a different --output."
    problems = [InputError(path, "already exists", expected="no file with this name", remedy=remedy) for path in taken]
    raise_all(str(dest_dir), problems)


def write_promoted(
    promotion: Promotion, folder: Path, executor: Executor, source_date: SourceDate, progress: Progress
) -> Path:
    """Write a distribution to its path below ``folder``, and return the path. An unchanged file is copied as is.

    Raises the same errors as `check_members`. Without these checks, the new RECORD would hide that files were modified.
    """
    path = folder / promotion.place
    candidate = promotion.candidate
    members = [*candidate.members.values()]
    digests = check_members(candidate.path, members, candidate.refused, executor=executor) if candidate.is_wheel else {}
    if not promotion.changed and path.name == promotion.candidate.path.name:
        shutil.copyfile(promotion.candidate.path, path)
    elif promotion.dist_info:
        _write_wheel(promotion, path, digests, executor, source_date, progress)
    else:
        stem = path.name.removesuffix(".tar.gz")
        write_sdist(path, stem, {**promotion.candidate.files, **promotion.changed}, mtime=source_date.seconds)
    _read_back(promotion, path, folder)
    return path


def _read_back(promotion: Promotion, path: Path, folder: Path) -> None:
    """Raise `InputError` about the candidate if the written file doesn't match its name or isn't readable."""
    try:
        read_candidate(path, folder)
    except InputError as e:
        found = f"can't be promoted: the new file {e.found}"
        remedy = "Build the candidate again with plain header lines in its metadata."
        raise InputError(promotion.candidate.path, found, expected=e.expected, remedy=remedy) from e


def _write_wheel(
    promotion: Promotion,
    path: Path,
    digests: Mapping[ZipMember, Digest],
    executor: Executor,
    source_date: SourceDate,
    progress: Progress,
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
                wheel.add_packed(renamed, safe_mode(member.mode), digests[member])
            else:
                wheel.add(promotion.renamed(member.name), safe_mode(member.mode), BytesContent(changed))
        wheel.close(metadata)


class Promotion(msgspec.Struct, frozen=True):
    """A distribution that is being promoted: its candidate, its new path, and its changed files."""

    candidate: Candidate
    place: str
    """The path of the new file below the destination."""
    dist_info: str
    """The name of the wheel's new ``.dist-info`` folder; empty for an sdist."""
    changed: dict[str, bytes]
    """The new content of changed files, keyed by their old path in the distribution."""

    @property
    def metadata(self) -> bytes:
        """The new METADATA or PKG-INFO."""
        return self.changed.get(self.candidate.metadata_name, self.candidate.metadata)

    def renamed(self, member: str) -> str:
        """Return the new path of a wheel's member.

        The names of ``.dist-info`` and ``.data`` folders contain the version.
        """
        old, new = self.candidate.dist_info.removesuffix(".dist-info"), self.dist_info.removesuffix(".dist-info")
        top, slash, rest = member.partition("/")
        return f"{new}{top.removeprefix(old)}{slash}{rest}" if top in {f"{old}.dist-info", f"{old}.data"} else member


def promote_set(packages: Sequence[Candidate], change: VersionChange, kept: KeptTargets | None) -> list[Promotion]:
    """Return the promotions of the distributions that are kept in a set.

    Raises `InputError` for files that can't be read, and for wheels of the same package with different code.
    """
    stay = [one for one in packages if kept is None or canonicalize_name(one.name) not in kept.dropped]
    places = {one.path: one.members.get(f"{one.dist_info}/{DECLARATION_NAME}") for one in stay} if kept else {}
    declarations = {
        path: decode_declaration(read_member(member), source=member.source) for path, member in places.items() if member
    }
    declared = {target.processor for found in declarations.values() for target in found.targets}
    made = [_promote(one, change, kept, declared) for one in stay]
    # Only SDK packages are compared. Frameworks aren't part of the SDK.
    sdk = [promotion for promotion in made if not rocm_version(promotion.candidate.version)]
    wheels = [promotion for promotion in sdk if promotion.dist_info and not promotion.candidate.info]
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
            data = encode_declaration(known.targets, report.recorded if known.targets else None)
            if data != read_member(wheel.candidate.members[name]):
                wheel.changed[name] = data
    return made


def _promote(candidate: Candidate, change: VersionChange, kept: KeptTargets | None, declared: set[str]) -> Promotion:
    # These files may state the version or list targets.
    if not candidate.is_wheel:
        texts = {name: data for name, data in candidate.files.items() if name == "PKG-INFO" or says_version(name)}
    else:
        members = candidate.members.items()
        found = {name: member for name, member in members if says_version(name) or name.endswith(f"/{DIST_INFO_PATH}")}
        texts = {name: read_member(member) for name, member in found.items()}
    own, metadata = candidate.version, candidate.metadata_name
    texts[metadata] = candidate.metadata
    changed = dict(texts)
    if change.new != change.old:
        changed |= {name: change.text(name, data, own) for name, data in texts.items() if says_version(name)}
        changed[metadata] = change.metadata(texts[metadata], own)
    if kept:
        _narrow(candidate, changed, metadata, kept, declared)
    changed = {name: data for name, data in changed.items() if data != texts[name]}
    dist_info = _versioned(candidate.dist_info.removesuffix(".dist-info"), change.version(own)) + ".dist-info"
    return Promotion(candidate, _place(candidate, change), dist_info if candidate.is_wheel else "", changed)


def _narrow(
    candidate: Candidate, changed: dict[str, bytes], metadata: str, kept: KeptTargets, declared: set[str]
) -> None:
    """Remove the dropped targets from the files in ``changed``."""
    host = host_extras(candidate)
    if host.targets:
        changed[metadata] = host.metadata(changed[metadata], kept.served)
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
    prefix, version = f"{candidate.folder}/" if candidate.folder else "", change.version(candidate.version)
    if not candidate.is_wheel:
        return f"{prefix}{_versioned(candidate.path.name.removesuffix('.tar.gz'), version)}.tar.gz"
    distribution, _, *rest = candidate.path.name.split("-")
    return f"{prefix}{'-'.join([distribution, version, *rest])}"


def _versioned(stem: str, version: str) -> str:
    """Return ``NAME-VERSION`` with a different version."""
    return f"{stem.rpartition('-')[0]}-{version}"


def _facts(wheel: Promotion, declaration: Declaration) -> WheelFacts:
    metadata = parse_core_metadata(wheel.metadata)[0]
    tops = {name.partition("/")[0] for name in wheel.candidate.members}
    roots = frozenset(top for top in tops if not top.endswith((".dist-info", ".data")))
    requires = tuple(metadata.get("requires_dist", ()))
    return WheelFacts(wheel.place, canonicalize_name(wheel.candidate.name), requires, declaration.targets, roots)
