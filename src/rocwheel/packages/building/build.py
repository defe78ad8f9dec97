"""Executing a plan: every byte is read once, packed by the executor's workers and written straight into its wheel."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec

import rocwheel
from rocwheel.distributions.formats.metadata import render_entry_points, render_metadata, render_wheel_file
from rocwheel.distributions.formats.sdist import write_sdist
from rocwheel.distributions.formats.source_date import SourceDate
from rocwheel.distributions.formats.wheel import WheelWriter, normalized_file_part
from rocwheel.distributions.packing.packing import Packer
from rocwheel.foundation.progress import SILENT, Progress
from rocwheel.packages.building.contents import member_content, member_mode
from rocwheel.packages.plan import FileMember, Member, Plan, PlannedSdist, PlannedWheel, PlanWarning, TarMember
from rocwheel.targets.coherence.declaration import DECLARATION_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.distributions.content.content import Content

__all__ = ["DEFAULT_LEVEL", "BuildResult", "BuiltDistribution", "build"]

DEFAULT_LEVEL = 6
"""libdeflate level of wheel members."""


class BuiltDistribution(msgspec.Struct, frozen=True):
    """A distribution that was written: its file, and the size of that file in bytes."""

    path: str
    size: int


class BuildResult(msgspec.Struct, frozen=True):
    """What a build made, in the order of the plan."""

    version: str
    targets: tuple[str, ...]
    distributions: tuple[BuiltDistribution, ...]
    warnings: tuple[PlanWarning, ...] = ()
    """Those of the plan; and of a whole job, about what else stands in the folder."""
    removed: tuple[str, ...] = ()
    """Unfinished files of builds that were killed, which a whole job removes."""


def build(
    plan: Plan,
    dist_dir: Path,
    executor: Executor,
    *,
    level: int = DEFAULT_LEVEL,
    source_date: SourceDate = SourceDate(),  # noqa: B008 (a frozen value)
    progress: Progress = SILENT,
) -> BuildResult:
    """Write every distribution of a plan to ``dist_dir``; ``level`` is libdeflate's, 0 stores.

    The bytes depend on the plan and the level alone. Raises `WorkError` when the folder can't be
    written or the disk is full: files that are not whole then don't appear.
    """
    progress.begin("building", sum(_planned_size(wheel.members) for wheel in plan.wheels))
    paths = _WheelBuild(plan.wheels, dist_dir, executor, level, source_date, progress).run()
    paths += [_write_sdist(sdist, dist_dir, source_date) for sdist in plan.sdists]
    progress.end()
    built = tuple(BuiltDistribution(str(path), path.stat().st_size) for path in paths)
    return BuildResult(plan.version, plan.targets, built, plan.warnings)


class _WheelBuild:
    def __init__(
        self,
        wheels: Sequence[PlannedWheel],
        dist_dir: Path,
        executor: Executor,
        level: int,
        source_date: SourceDate,
        progress: Progress,
    ) -> None:
        self._wheels = wheels
        self._dist_dir = dist_dir
        self._executor = executor
        self._packer = Packer(executor, level, progress=progress)
        self._source_date = source_date
        self._writers: list[WheelWriter] = []
        self._closing: list[Future[None]] = []

    def run(self) -> list[Path]:
        # Closing syncs to disk: a thread of its own lets the next wheel go on meanwhile.
        with ThreadPoolExecutor(1, "rocwheel-close") as closer:
            try:
                # The largest wheel first: small members at the end keep all workers busy to the last moment.
                for wheel in sorted(
                    self._wheels, key=lambda wheel: (-_planned_size(wheel.members), wheel.name.file_name)
                ):
                    self._add(wheel, closer)
                self._packer.drain()
                for future in self._closing:
                    future.result()
            except BaseException:
                self._packer.cancel()
                for writer in self._writers:
                    writer.abort()
                raise
        return [self._path(wheel) for wheel in self._wheels]

    def _path(self, wheel: PlannedWheel) -> Path:
        return self._dist_dir / wheel.folder / wheel.name.file_name

    def _add(self, wheel: PlannedWheel, closer: Executor) -> None:
        writer = WheelWriter(self._path(wheel), wheel.name, self._source_date.zip_time)
        self._writers.append(writer)
        for member in sorted(wheel.members, key=lambda member: (-_planned_size([member]), member.path)):
            content = member_content(member, mtime=self._source_date.seconds, executor=self._executor)
            self._add_member(writer, member, content)
        for text in wheel.licenses:
            content = member_content(text, mtime=self._source_date.seconds)
            self._packer.add(writer, f"{wheel.name.dist_info}/licenses/{text.path}", 0o644, content)
        self._packer.call(lambda: self._closing.append(closer.submit(writer.close, _metadata_files(wheel))))

    def _add_member(self, writer: WheelWriter, member: Member, content: Content) -> None:
        if isinstance(member, TarMember) and member.compression != "none":
            self._packer.add_encoded(writer, member.path, 0o644, content, member.compression)
        else:
            self._packer.add(writer, member.path, member_mode(member), content)


def _planned_size(members: Sequence[Member]) -> int:
    """Return the bytes that members come from, before edits."""
    return sum(_source_size(member) for member in members)


def _source_size(member: Member) -> int:
    if isinstance(member, FileMember):
        return member.source.size
    if isinstance(member, TarMember):
        return sum(entry.file.source.size for entry in member.entries if entry.file)
    return 0


def _metadata_files(wheel: PlannedWheel) -> dict[str, bytes]:
    generator = f"rocwheel {rocwheel.__version__}"
    files = {
        "METADATA": render_metadata(wheel.metadata),
        "WHEEL": render_wheel_file(generator, (wheel.name.tag,), is_purelib=wheel.is_purelib),
    }
    if wheel.declaration:
        files[DECLARATION_NAME] = wheel.declaration.encode()
    if wheel.console_scripts:
        files["entry_points.txt"] = render_entry_points(wheel.console_scripts)
    return files


def _write_sdist(sdist: PlannedSdist, dist_dir: Path, source_date: SourceDate) -> Path:
    stem = f"{normalized_file_part(sdist.distribution)}-{sdist.version}"
    path = dist_dir / sdist.folder / f"{stem}.tar.gz"
    members = {name: text.encode() for name, text in sdist.files.items()}
    write_sdist(path, stem, members, mtime=source_date.seconds)
    return path
