"""Turns release candidates into a release: what wheels hold is copied as it is packed, but for few changed files."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.version import Version

from rocwheel.build.placement import canonical_order
from rocwheel.build.promoting.candidates import Candidate, VersionChange, read_candidates
from rocwheel.build.promoting.promotion import KeptTargets, Promotion, promote_set
from rocwheel.core.errors import InputError, write_error
from rocwheel.core.messages import count
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.scratch import scratch_folder
from rocwheel.core.workers import map_collecting, open_workers, raise_all, worker_count
from rocwheel.core.writing import check_destination, safe_mode
from rocwheel.environment.check_record import wheel_record_problems
from rocwheel.environment.tree import Distribution, InstalledFile
from rocwheel.wheels.content import BytesContent
from rocwheel.wheels.record import parse_record, unhashed_paths
from rocwheel.wheels.sbom import SBOM_NAME
from rocwheel.wheels.sdist import SourceDate, write_sdist
from rocwheel.wheels.writing import write_wheels
from rocwheel.wheels.zip_directory import read_directory
from rocwheel.wheels.zip_reader import digest_member, read_member

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from concurrent.futures import Executor


class PromotedDistribution(msgspec.Struct, frozen=True):
    """A distribution with its new version: the paths of its old and its new file, and the new one's size in bytes."""

    source: str
    path: str
    size: int


class PromotionResult(msgspec.Struct, frozen=True):
    """What a promotion made."""

    old_version: str
    version: str
    distributions: tuple[PromotedDistribution, ...]
    left_out: tuple[str, ...] = ()
    """The paths of candidates for targets that were not to be kept."""
    targets: tuple[str, ...] = ()
    """What the selector offers, when some targets alone were kept."""


class PromoteJob(msgspec.Struct, frozen=True):
    """What gets another version, and where it goes."""

    dist: Path
    to: str
    dest_dir: Path
    targets: tuple[str, ...] = ()
    """The processors whose packages stay; empty for all."""
    jobs: int = 0
    """Workers; 0 for one per core."""

    def run(self, *, progress: Progress = SILENT) -> PromotionResult:
        """Write all distributions, or none, with the date of ``SOURCE_DATE_EPOCH``.

        Raises `InputError`, or `ProblemsError` with all that is wrong, before anything is written and for damaged
        files; `ChangedFileError` for a file that changes meanwhile, and `WorkError` when writing fails.
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
        """Return by folder what stays there, none for everything."""
        if not self.targets:
            return dict.fromkeys(sets)
        selectors = {folder: next((one for one in packages if one.info), None) for folder, packages in sets.items()}
        infos = {folder: selector.info for folder, selector in selectors.items() if selector}
        if not infos:
            found, expected = "has no selector", "a rocm sdist or wheel, which says what is for which GPU"
            raise InputError(self.dist, found, expected=expected, remedy="Promote it without --targets.")
        offered = {target for info in infos.values() for row in info["FAMILIES"].values() for target in row["targets"]}
        absent = [target for target in self.targets if target not in offered]
        if absent:
            option, found = "--targets", f"{self.dist} has no packages for {', '.join(absent)}"
            raise InputError(option, found, expected=f"some of {', '.join(canonical_order(offered)) or 'none'}")
        kept = {folder: KeptTargets.among(info, self.targets) for folder, info in infos.items()}
        shared = KeptTargets.together(kept.values())
        return {folder: kept.get(folder, shared) for folder in sets}

    def _write(self, promotions: Sequence[Promotion], workers: int, progress: Progress) -> None:
        """Write everything into a hidden folder, then give all of it its place."""
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
            self._place(folder, [promotion.place for promotion in promotions])

    @contextmanager
    def _made_folder(self) -> Iterator[None]:
        """Make the destination, and remove it if it is new and nothing came into it."""
        is_new = not self.dest_dir.exists()
        try:
            self.dest_dir.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as e:
            raise write_error(self.dest_dir, e, remedy="Check the free space and its permissions.") from e
        finally:
            if is_new:
                # Only an empty folder goes.
                with suppress(OSError):
                    self.dest_dir.rmdir()

    def _place(self, folder: Path, places: Sequence[str]) -> None:
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
    """Return the version that is asked for, normalized; raise `InputError` when it isn't one (:pep:`440`)."""
    try:
        return str(Version(text))
    except ValueError as e:
        raise InputError(_OPTION, f"is {text!r}", expected="a version as PEP 440 defines it, such as 7.2.0") from e


def check_versions(dist: Path, candidates: Sequence[Candidate], new: str) -> str:
    """Return the one version of the candidates, which is lower than ``new``.

    Raises `InputError`, or `ProblemsError` with all of these: several versions, a candidate of the new version, and one
    of a later version.
    """
    by_version: defaultdict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_version[candidate.version].append(candidate)
    problems = []
    if len(by_version) > 1:
        listed = "; ".join(f"{version}: {_names(group)}" for version, group in by_version.items())
        remedy = "Keep the files of one version in the folder, and move the others."
        problems.append(InputError(dist, f"holds several versions: {listed}", expected="one", remedy=remedy))
    for version, group in by_version.items():
        if Version(version) == Version(new):
            found = f"is {new}, which {_names(group)} in {dist} {'has' if len(group) == 1 else 'have'} already"
            problems.append(InputError(_OPTION, found, expected="a version that is not there yet"))
        elif Version(version) > Version(new):
            found = f"is {new}, which is lower than {version} of {_names(group)}"
            problems.append(InputError(_OPTION, found, expected="a later version: installers would take the old one"))
    raise_all(str(dist), problems)
    return next(iter(by_version))


def _names(group: Sequence[Candidate]) -> str:
    names = [candidate.path.name for candidate in group]
    return ", ".join(names) if len(names) < 4 else f"{', '.join(names[:2])} and {count(len(names) - 2, 'other file')}"


def check_output(dist: Path, dest_dir: Path, places: Collection[str]) -> None:
    """Raise `InputError`, or `ProblemsError`, when a file would stand among the candidates or in place of another."""
    if dest_dir.resolve().is_relative_to(dist.resolve()):
        found = "holds the candidates" if dest_dir.resolve() == dist.resolve() else f"is a folder in {dist}"
        raise InputError(dest_dir, found, expected="a folder outside of theirs", remedy="Change --dest-dir.")
    taken = [dest_dir / place for place in places if (dest_dir / place).exists() or (dest_dir / place).is_symlink()]
    remedy = "Remove it, or change --dest-dir."
    problems = [InputError(path, "exists already", expected="no file of that name", remedy=remedy) for path in taken]
    raise_all(str(dest_dir), problems)


def write_promoted(
    promotion: Promotion, folder: Path, executor: Executor, source_date: SourceDate, progress: Progress
) -> Path:
    """Write one distribution to its place below ``folder`` and return its path.

    Raises `InputError`, or `ProblemsError`, for damaged members, and for a wheel whose RECORD is not true of them: with
    a true one, the new wheel would vouch for files that somebody changed.
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
    # The format wants the files of .dist-info itself at a wheel's end, and bills with them.
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
    """Compare the old RECORD with the old members, whose digests are in the new RECORD where they were copied."""
    candidate = promotion.candidate
    source = str(candidate.path)
    old = candidate.members.get(f"{candidate.dist_info}/RECORD")
    if old is None:
        raise InputError(source, "has no RECORD", expected="a wheel, which has one", remedy="Build it again.")
    owner = Distribution(
        name=candidate.name,
        version=candidate.version,
        source=source,
        dist_info=candidate.dist_info,
        record=parse_record(read_member(old), old.source),
    )
    problems = [
        InputError(source, problem.found, remedy="It is damaged: build or download it again.")
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
