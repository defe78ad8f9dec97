"""Merges the artifacts of several builds for different GPU families into one set."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import Artifact, Member
from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.artifacts.reading import open_artifacts
from rocwheel.artifacts.shards import (
    HostFiles,
    MergedArtifact,
    MergeReport,
    Shard,
    check_declared,
    choose_host_files,
    find_missing_targets,
    sort_shard,
    unite_device_files,
)
from rocwheel.artifacts.transfer import write_artifact
from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileRange
from rocwheel.core.scratch import open_temporary, path_of, write_all
from rocwheel.core.workers import map_collecting, raise_all
from rocwheel.core.writing import new_folder
from rocwheel.targets.kernel_files import is_unknown_kernel_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.artifacts.artifact import ArtifactName
    from rocwheel.artifacts.shards import ShardFile


class MergeOptions(msgspec.Struct, frozen=True):
    """The shard whose host files are used, and the allowed differences and missing targets."""

    primary: str
    may_differ: tuple[str, ...] = ()
    allow_missing: bool = False
    """Whether a shard may lack targets that it declares."""


class MergePlan(msgspec.Struct, frozen=True):
    """The artifacts of the merged set, and the report from planning."""

    artifacts: tuple[Artifact, ...]
    report: MergeReport


@contextmanager
def opened_merge(
    directories: Sequence[Path], options: MergeOptions, *, progress: Progress = SILENT
) -> Iterator[MergePlan]:
    """Read the shards and plan their merge. Files can be read inside the block.

    Raises `ProblemsError` with every file that can't be merged: host files with differences that are not allowed,
    different bytes for the same GPU, and files whose code is for a GPU other than the one in their name. Also raises
    the same errors as `open_artifacts`.
    """
    folders = tuple(dict.fromkeys(directories))
    _require_shards(folders, options)
    with ExitStack() as stack:

        def read(folder: Path) -> Shard:
            artifacts = stack.enter_context(open_artifacts(folder, progress=progress))
            return sort_shard(str(folder), artifacts)

        shards = map_collecting("the shards", read, folders)
        primary = next(shard for shard in shards if shard.location == options.primary)
        yield _plan(primary, [shard for shard in shards if shard is not primary], options, stack)


def _require_shards(folders: Sequence[Path], options: MergeOptions) -> None:
    if options.primary not in map(str, folders):
        given = ", ".join(map(str, folders))
        msg = "--primary"
        raise InputError(msg, f"is {options.primary}, which is not one of the shards", expected=f"one of {given}")
    if len({folder.resolve() for folder in folders}) < 2:
        msg = "the shards"
        raise InputError(
            msg,
            "are all in the same folder",
            expected="at least two folders",
            remedy="Specify the folder of each build.",
        )


def _plan(primary: Shard, others: Sequence[Shard], options: MergeOptions, stack: ExitStack) -> MergePlan:
    shards = (primary, *others)
    accepted = PathPatterns(options.may_differ) if options.may_differ else None
    host = choose_host_files(primary, others, accepted)
    problems = [*host.problems]
    device = unite_device_files(shards, problems)
    missing = check_declared(shards, problems, allow_missing=options.allow_missing)
    raise_all("the shards", sorted(problems, key=str))
    files = [*_united(host, stack), *device]
    artifacts = tuple(_artifact(name, group) for name, group in _grouped(files))
    report = MergeReport(
        primary=primary.location,
        shards=tuple(shard.location for shard in shards),
        targets=tuple(sorted({target for shard in shards for target in shard.targets})),
        artifacts=tuple(_described(name, group, shards) for name, group in _grouped(files)),
        differences=host.differences,
        missing=(*missing, *find_missing_targets(shards)),
        unknown=tuple(sorted({f.path for shard in shards for f in shard.files if is_unknown_kernel_file(f.path)})),
    )
    return MergePlan(artifacts, report)


def _united(host: HostFiles, stack: ExitStack) -> Iterator[ShardFile]:
    """Yield the host files. Files with new content are unnamed files that exist as long as ``stack`` does."""
    for file in host.files:
        content = host.united.get(file.key)
        if content is None:
            yield file
            continue
        try:
            spool = stack.enter_context(open_temporary())
            write_all(spool, content)
        except OSError as e:
            raise WorkError(
                file.place, f"can't be merged ({e.strerror or e})", remedy="Check the free disk space."
            ) from e
        source = FileRange(path_of(spool), 0, len(content))
        yield msgspec.structs.replace(file, member=msgspec.structs.replace(file.member, source=source))


def _grouped(files: Iterable[ShardFile]) -> list[tuple[ArtifactName, list[ShardFile]]]:
    groups: dict[ArtifactName, list[ShardFile]] = {}
    for file in files:
        groups.setdefault(file.artifact, []).append(file)
    return sorted(groups.items())


def _artifact(name: ArtifactName, files: Sequence[ShardFile]) -> Artifact:
    stages = tuple(sorted({file.stage for file in files}))
    members: tuple[Member, ...] = tuple(sorted((file.member for file in files), key=lambda member: member.path))
    return Artifact(name, str(name), stages, members)


def _described(name: ArtifactName, files: Sequence[ShardFile], shards: Sequence[Shard]) -> MergedArtifact:
    sources = {file.location for file in files}
    places = tuple(s.location for s in shards if any(artifact.location in sources for artifact in s.artifacts))
    size = sum(file.member.source.size for file in files if file.member.source)
    return MergedArtifact(str(name), len(files), size, places)


def write_merge(plan: MergePlan, dest: Path, *, hard_links: bool = False) -> MergeReport:
    """Write the merged set to the folder ``dest``, which appears when it is complete, and return the report.

    Raises `InputError` if ``dest`` exists and is not an empty folder, or if it is inside a shard. Raises `WorkError` if
    ``dest`` can't be written to.
    """
    with new_folder(dest, *map(Path, plan.report.shards)) as root:
        for artifact in plan.artifacts:
            folder = root / str(artifact.name)
            folder.mkdir()
            write_artifact(artifact, folder, hard_links=hard_links)
    return msgspec.structs.replace(plan.report, dest_dir=str(dest))
