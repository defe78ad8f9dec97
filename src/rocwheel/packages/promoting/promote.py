"""A whole promotion: from a folder of release candidates to the same packages with another version."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError, write_error
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.scratch import scratch_folder
from rocwheel.core.workers import convert_all, open_workers, worker_count
from rocwheel.core.writing import check_destination
from rocwheel.distributions.formats.source_date import SourceDate
from rocwheel.packages.layout.prefixes import canonical_order
from rocwheel.packages.promoting.candidates import Candidate, SetInFolder, read_candidates
from rocwheel.packages.promoting.checks import check_output, check_versions, checked_version
from rocwheel.packages.promoting.kept_targets import KeptTargets
from rocwheel.packages.promoting.promotion import Promotion, promote_set
from rocwheel.packages.promoting.version_change import VersionChange
from rocwheel.packages.promoting.write_promoted import write_promoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["PromoteJob", "PromotedDistribution", "PromotionResult"]


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
        candidates = [candidate for packages in sets for candidate in packages.candidates]
        old = check_versions(self.dist, candidates, version)
        kept = self._kept(sets)
        change = VersionChange(old, version)
        groups = [promote_set(one, change, kept[one.folder]) for one in sets if _stays(kept[one.folder])]
        promotions = [promotion for group in groups for promotion in group]
        check_output(self.dist, self.dest_dir, [promotion.place for promotion in promotions])
        self._write(promotions, workers, progress)
        return self._result(change, promotions, candidates, kept.values())

    def _kept(self, sets: Sequence[SetInFolder]) -> dict[str, KeptTargets | None]:
        """Return by folder what stays there, none for everything."""
        if not self.targets:
            return dict.fromkeys(packages.folder for packages in sets)
        infos = {packages.folder: packages.selector.info for packages in sets if packages.selector}
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
        return {packages.folder: kept.get(packages.folder, shared) for packages in sets}

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
            convert_all(str(self.dist), lambda one: write_promoted(one, folder, executor, date, progress), promotions)
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

    def _result(
        self,
        change: VersionChange,
        promotions: Sequence[Promotion],
        candidates: Sequence[Candidate],
        kept: Iterable[KeptTargets | None],
    ) -> PromotionResult:
        paths = {promotion.candidate.path: self.dest_dir / promotion.place for promotion in promotions}
        made = [PromotedDistribution(str(old), str(new), new.stat().st_size) for old, new in paths.items()]
        left_out = tuple(str(candidate.path) for candidate in candidates if candidate.path not in paths)
        families = tuple(dict.fromkeys(family for one in kept if one for family in one.families))
        return PromotionResult(change.old, change.new, tuple(made), left_out, families)


def _stays(kept: KeptTargets | None) -> bool:
    return kept is None or bool(kept.families)
