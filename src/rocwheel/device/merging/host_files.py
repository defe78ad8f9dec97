"""The host files of the merged set: the primary's, compared with those of every other shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.model.artifact import ANY_EXECUTE
from rocwheel.artifacts.model.dist_info import DIST_INFO_PATH
from rocwheel.artifacts.model.names import ArtifactName
from rocwheel.artifacts.model.sdk_manifest import SDK_MANIFEST_PATH, SdkManifest
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.device.merging.host_parts import HostDifference, compare_host_parts
from rocwheel.device.merging.report import Difference
from rocwheel.device.merging.rules import may_differ
from rocwheel.device.merging.shards import ShardFile
from rocwheel.device.merging.united_files import LARGEST, unite_dist_info, unite_lines, unite_maps
from rocwheel.targets.kernel_files.classify import shared_row
from rocwheel.targets.kernel_files.table import Difference as SharedRule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rocwheel.artifacts.patterns import PathPatterns
    from rocwheel.device.merging.shards import Shard
    from rocwheel.device.merging.united_files import Text

__all__ = ["HostFiles", "choose_host_files"]

_SPLIT_FIRST = "Split the stage folders of each build's artifacts first, with `rocwheel device split`, and merge these."
_DIFFERENT_BUILDS = "Merge builds of one commit with one set of options; --may-differ names files that may differ."


_HARMLESS = frozenset({HostDifference.BUILD_ID.value, HostDifference.LAYOUT.value})
"""What may differ in any library: archives hold the device code, wherever its space was."""


class HostFiles(msgspec.Struct, frozen=True):
    """The chosen host files, those with new content, what differed, and what can't be merged."""

    files: tuple[ShardFile, ...]
    united: dict[tuple[ArtifactName, str], bytes]
    """New content by the key of a chosen file."""
    differences: tuple[Difference, ...]
    problems: tuple[RocwheelError, ...]


def choose_host_files(primary: Shard, others: Sequence[Shard], accepted: PathPatterns | None) -> HostFiles:
    """Compare the host files of all shards; what differs and may not is a problem, unless ``accepted`` matches it."""
    chosen = {file.key: file for file in primary.files if file.is_host}
    comparison = _Comparison(chosen, accepted)
    for shard in others:
        comparison.add(shard)
    comparison.unite()
    return HostFiles(
        tuple(chosen.values()),
        comparison.united,
        tuple(sorted(comparison.differences, key=msgspec.structs.astuple)),
        tuple(comparison.problems),
    )


class _Comparison:
    def __init__(self, chosen: Mapping[tuple[ArtifactName, str], ShardFile], accepted: PathPatterns | None) -> None:
        self.united: dict[tuple[ArtifactName, str], bytes] = {}
        self.differences: list[Difference] = []
        self.problems: list[RocwheelError] = []
        self._chosen = chosen
        self._accepted = accepted
        self._others: dict[tuple[ArtifactName, str], list[ShardFile]] = {}

    def add(self, shard: Shard) -> None:
        """Compare the host files of a shard with the chosen ones, and list what only one of both has."""
        theirs = {file.key: file for file in shard.files if file.is_host}
        artifacts = {artifact for artifact, _ in theirs}
        for key, file in theirs.items():
            mine = self._chosen.get(key)
            if mine is None:
                self._judge(file, file, shard, "only there")
            else:
                self._compare(mine, file, shard)
        for key, file in self._chosen.items():
            if key not in theirs and file.artifact in artifacts:
                self._note(file, shard, "absent", "kept")

    def _compare(self, mine: ShardFile, other: ShardFile, shard: Shard) -> None:
        try:
            differs = _difference(mine, other)
            if mine.path == SDK_MANIFEST_PATH and differs:
                _require_same_build(mine, other)
        except RocwheelError as e:
            self.problems.append(e)
            return
        if mine.path == DIST_INFO_PATH and differs:
            self._others.setdefault(mine.key, []).append(other)
            self._note(mine, shard, differs, "united")
        elif differs in _HARMLESS:
            self._note(mine, shard, differs, "primary's")
        elif differs:
            self._judge(mine, other, shard, differs)

    def _judge(self, mine: ShardFile, other: ShardFile, shard: Shard, differs: str) -> None:
        """Decide on a difference by the tables, and report it."""
        row = shared_row(mine.path)
        is_there = mine is not other
        taken = "primary's" if is_there else "left out"
        if self._accepted and self._accepted.matches(mine.path):
            outcome = taken
        elif reason := may_differ(mine.path):
            outcome = f"{taken}: {reason}"
        elif row and is_there and row.differs in {SharedRule.LINES, SharedRule.MAPS}:
            self._others.setdefault(mine.key, []).append(other)
            outcome = "united"
        elif row and is_there and row.differs is SharedRule.PRIMARY:
            outcome = f"primary's: {row.reason}"
        else:
            self.problems.append(_problem(mine, other, differs, row.reason if row else ""))
            outcome = "refused"
        self._note(mine, shard, differs, outcome)

    def _note(self, file: ShardFile, shard: Shard, differs: str, outcome: str) -> None:
        self.differences.append(Difference(file.path, shard.location, differs, outcome))

    def unite(self) -> None:
        """Make the files that are united of all shards'."""
        for key, others in self._others.items():
            mine = self._chosen[key]
            try:
                self.united[key] = _uniter(mine.path)([_text(file) for file in (mine, *others)])
            except RocwheelError as e:
                self.problems.append(e)


def _difference(mine: ShardFile, other: ShardFile) -> str:
    """Return what two files of one place differ in; empty where in nothing."""
    one, two = mine.member, other.member
    if (one.kind, one.link) != (two.kind, two.link):
        return "kind or link"
    if one.source is None or two.source is None:
        return ""
    if bool(one.mode & ANY_EXECUTE) != bool(two.mode & ANY_EXECUTE):
        return "executable bits"
    with one.source.view() as a, two.source.view() as b:
        found = compare_host_parts(a, b, name=other.place)
    return {HostDifference.NONE: "", HostDifference.HOST: "bytes"}.get(found, found.value)


def _problem(mine: ShardFile, other: ShardFile, differs: str, reason: str) -> InputError:
    if mine is other:
        found = "is a host file that the primary doesn't have"
        return InputError(other.place, found, remedy="Name another primary, or a --may-differ pattern to leave it out.")
    found = f"is not the same as {mine.place}: they differ in {differs}"
    if differs == HostDifference.DEVICE_CODE.value:
        return InputError(other.place, found, expected="host files without device code", remedy=_SPLIT_FIRST)
    return InputError(other.place, found + (f", and {reason}" if reason else ""), remedy=_DIFFERENT_BUILDS)


def _require_same_build(mine: ShardFile, other: ShardFile) -> None:
    one, two = (_manifest(file) for file in (mine, other))
    for field in ("rocm_version", "rocm_package_version", "the_rock_commit", "flags"):
        here, there = getattr(one, field), getattr(two, field)
        if here != there:
            found = f"says {there!r} for {field}, and {mine.place} {here!r}"
            raise InputError(other.place, found, expected="one build", remedy=_DIFFERENT_BUILDS)


def _manifest(file: ShardFile) -> SdkManifest:
    name, data = _text(file)
    return SdkManifest.parse(data, name)


def _uniter(path: str) -> Callable[[Sequence[Text]], bytes]:
    if path == DIST_INFO_PATH:
        return unite_dist_info
    row = shared_row(path)
    return unite_lines if row and row.differs is SharedRule.LINES else unite_maps


def _text(file: ShardFile) -> Text:
    source = file.member.source
    assert source is not None, "links are not united"
    if source.size > LARGEST:
        raise InputError(file.place, f"has {source.size} bytes", expected=f"at most {LARGEST} of a file to unite")
    return file.place, source.read()
