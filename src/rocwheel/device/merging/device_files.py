"""The device files of the merged set: those of all shards, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.model.dist_info import DIST_INFO_PATH, declared_targets
from rocwheel.binary.code_objects.target_id import processor_of
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.reading import have_same_bytes
from rocwheel.device.merging.report import MissingTarget
from rocwheel.device.merging.shards import ShardFile
from rocwheel.targets.kernel_files.check import check_kernel_file
from rocwheel.targets.kernel_files.classify import classify_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.artifacts.model.names import ArtifactName
    from rocwheel.device.merging.shards import Shard

__all__ = ["DeclaredTargets", "DeviceFiles", "check_declared", "find_missing", "unite_device_files"]


class DeviceFiles(msgspec.Struct, frozen=True):
    """The device files, each once, and what can't be united."""

    files: tuple[ShardFile, ...]
    problems: tuple[RocwheelError, ...]


class DeclaredTargets(msgspec.Struct, frozen=True):
    """Targets that shards say they were built for and lack, as far as that is allowed, and as problems otherwise."""

    missing: tuple[MissingTarget, ...]
    problems: tuple[RocwheelError, ...]


def unite_device_files(shards: Iterable[Shard]) -> DeviceFiles:
    """Return the device files of all shards; the same bytes at one place count once, other bytes are a problem.

    What a file contains is compared with what it and its artifact are called.
    """
    chosen: dict[tuple[ArtifactName, str], ShardFile] = {}
    problems: list[RocwheelError] = []
    for file in (file for shard in shards for file in shard.files if not file.is_host):
        first = chosen.setdefault(file.key, file)
        if first is file:
            problems += _content_problems(file)
        elif not _is_same(first, file):
            found = f"is not the same as {first.place}, and both are for {file.artifact.target}"
            remedy = "Take the target out of one of the builds."
            problems.append(InputError(file.place, found, expected="one file, or the same bytes", remedy=remedy))
    return DeviceFiles(tuple(chosen.values()), tuple(problems))


def _is_same(one: ShardFile, other: ShardFile) -> bool:
    mine, theirs = one.member.source, other.member.source
    if mine is None or theirs is None:
        return one.member.link == other.member.link
    with mine.view() as a, theirs.view() as b:
        return have_same_bytes(a, b)


def _content_problems(file: ShardFile) -> Iterator[RocwheelError]:
    named = classify_path(file.path)
    if named and named.target.replace("_", "-") != file.artifact.target:
        yield InputError(
            file.place,
            f"is for {named.target} by its name, and in the artifact {file.source}, for {file.artifact.target}",
            expected="one target",
        )
    if file.member.source is not None:
        with file.member.source.view() as data:
            yield from check_kernel_file(data, file.path, name=file.place)


def find_missing(shards: Sequence[Shard]) -> tuple[MissingTarget, ...]:
    """Return what artifacts with device files lack: targets for which their shard has files in other artifacts."""
    found: dict[tuple[str, str], list[str]] = {}
    names = {(file.artifact.name, file.artifact.component) for s in shards for file in s.files if not file.is_host}
    for shard in shards:
        present = {(f.artifact.name, f.artifact.component, f.artifact.target) for f in shard.files if not f.is_host}
        for name, component in names:
            for target in shard.targets:
                if (name, component, target) not in present:
                    found.setdefault((f"{name}_{component}", target), []).append(shard.location)
    held = {(f"{f.artifact.name}_{f.artifact.component}", f.artifact.target) for s in shards for f in s.files}
    return tuple(MissingTarget(*key, tuple(places)) for key, places in sorted(found.items()) if key not in held)


def check_declared(shards: Sequence[Shard], *, allow_missing: bool) -> DeclaredTargets:
    """Compare, for each shard, the targets that it declares with those that it has files for.

    Shards that name the same targets are parts of one build, which has the files of all of them. Nothing is said where
    no shard has files of one target: all device code may be inside of libraries.
    """
    named: dict[frozenset[str], list[tuple[Shard, ShardFile]]] = {}
    problems: list[RocwheelError] = []
    for shard, file in ((own, file) for own in shards for file in own.files if file.path == DIST_INFO_PATH):
        if file.member.source is None or not any(shard.targets for shard in shards):
            continue
        try:
            declared = declared_targets(file.place, file.member.source.read())
        except RocwheelError as e:
            problems.append(e)
            continue
        named.setdefault(frozenset(map(processor_of, declared)), []).append((shard, file))
    missing: list[MissingTarget] = []
    for targets, parts in named.items():
        absent = sorted(targets.difference(*(shard.targets for shard, _ in parts)))
        places = tuple(dict.fromkeys(shard.location for shard, _ in parts))
        missing += [MissingTarget("", target, places) for target in absent if allow_missing]
        if absent and not allow_missing:
            problems.append(_lack(parts[0][1], absent, places))
    return DeclaredTargets(tuple(missing), tuple(problems))


def _lack(file: ShardFile, absent: Sequence[str], places: Sequence[str]) -> RocwheelError:
    verb = "has" if len(places) == 1 else "have"
    found = f"names {', '.join(absent)}, for which {', '.join(places)} {verb} no file"
    remedy = "Is the build whole? To merge it as it is, give --allow-missing."
    return InputError(file.place, found, expected="a file for each target", remedy=remedy)
