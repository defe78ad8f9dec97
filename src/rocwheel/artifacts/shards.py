"""Merges the artifacts of builds for different GPU families: host files once, and device files from all builds."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.artifacts.artifact import ANY_EXECUTE, Artifact, ArtifactName, FileKind, Member, place
from rocwheel.artifacts.host_parts import HostDifference, compare_host_parts
from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.artifacts.sdk_files import (
    DIST_INFO_PATH,
    SDK_MANIFEST_PATH,
    SdkManifest,
    declared_targets,
    with_declared_targets,
)
from rocwheel.binary.code_objects import processor_of
from rocwheel.core.decoding import read_table
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.reading import have_same_bytes
from rocwheel.targets.catalog import is_family
from rocwheel.targets.compatibility import GENERIC
from rocwheel.targets.kernel_files import Difference as SharedRule
from rocwheel.targets.kernel_files import check_kernel_file, classify_path, shared_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


class ShardFile(msgspec.Struct, frozen=True):
    """A file or symlink in a shard, and its artifact in the merged set."""

    artifact: ArtifactName
    """The artifact. Its target is ``generic`` or a single GPU target without features."""
    stage: str
    member: Member
    source: ArtifactName
    location: str
    """The folder or archive that the file was read from."""

    @property
    def path(self) -> str:
        """The path in the merged prefix."""
        return self.member.path[len(self.stage) + 1 :]

    @property
    def place(self) -> str:
        """The location of the file for messages."""
        return place(self.location, self.member.path)

    @property
    def is_host(self) -> bool:
        """Whether the file is for all GPUs."""
        return self.artifact.target == GENERIC

    @property
    def key(self) -> tuple[ArtifactName, str]:
        """The artifact and path in the merged set. Files from two shards with the same key become one file."""
        return self.artifact, self.member.path


class Shard(msgspec.Struct, frozen=True):
    """A build: its location, its artifacts, and their files, sorted by their paths in the merged set."""

    location: str
    artifacts: tuple[Artifact, ...]
    files: tuple[ShardFile, ...]

    @property
    def targets(self) -> frozenset[str]:
        """The targets for which the shard has files."""
        return frozenset(file.artifact.target for file in self.files if not file.is_host)


def sort_shard(location: str, artifacts: Sequence[Artifact]) -> Shard:
    """Return a shard with each file assigned to its artifact in the merged set.

    In an artifact for a single target, all files are kept, because for some files, only the artifact indicates the
    target. Artifacts for all targets or a GPU family also contain host files. For these artifacts, the table of kernel
    files determines the targets.
    """
    files = sorted(_files(artifacts), key=lambda file: file.key)
    return Shard(location, tuple(artifacts), tuple(files))


def _files(artifacts: Iterable[Artifact]) -> Iterator[ShardFile]:
    for artifact in artifacts:
        own = _own_target(artifact.name)
        for member in artifact.members:
            stage = artifact.stage_of(member.path)
            if member.kind is FileKind.DIRECTORY or stage is None:
                continue
            target = own or _target_of(member.path[len(stage) + 1 :])
            name = msgspec.structs.replace(artifact.name, target=target)
            yield ShardFile(name, stage, member, artifact.name, artifact.location)


def _own_target(name: ArtifactName) -> str:
    """Return the target of an artifact for a single target, or an empty string if it is for several targets."""
    if name.target == GENERIC or is_family(name.target):
        return ""
    return processor_of(name.target)


def _target_of(path: str) -> str:
    found = classify_path(path)
    # Targets in artifact names contain a dash instead of an underscore, as in package names.
    return found.target.replace("_", "-") if found else GENERIC


class MergedArtifact(msgspec.Struct, frozen=True):
    """An artifact in the merged set, with its files and links, their sizes, and the shards that the files come from."""

    name: str
    files: int
    bytes: int
    shards: tuple[str, ...]


class ShardDifference(msgspec.Struct, frozen=True):
    """A file for all GPUs that differs between shards, and how the difference was resolved."""

    path: str
    shard: str
    """The shard that differs from the primary shard."""
    differs: str
    """The kind of difference: ``build id``, ``bytes``, ``absent``, and so on."""
    outcome: str


class MissingTarget(msgspec.Struct, frozen=True):
    """A target that an artifact with device files lacks, even though its shard was built for that target."""

    artifact: str
    """The name of the artifact. Empty if the target is declared, but missing from all artifacts of a shard."""
    target: str
    shards: tuple[str, ...]


class MergeReport(msgspec.Struct, frozen=True):
    """The results of a merge. ``dest_dir`` is empty if nothing was written."""

    primary: str
    shards: tuple[str, ...]
    targets: tuple[str, ...]
    artifacts: tuple[MergedArtifact, ...]
    differences: tuple[ShardDifference, ...]
    missing: tuple[MissingTarget, ...]
    unknown: tuple[str, ...]
    """Files that are named like kernel files but that aren't in the table.

    Only the artifact indicates their target.
    """
    dest_dir: str = ""


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    files: tuple[str, ...]
    reason: str
    source: str


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    row: tuple[_Row, ...]


@cache
def _rows() -> tuple[tuple[PathPatterns, str], ...]:
    table = read_table("rocwheel.artifacts", "may_differ.toml", _Table)
    return tuple((PathPatterns(row.files), row.reason) for row in table.row)


def may_differ(path: str) -> str | None:
    """Return the reason why a path in the prefix may differ between shards, or `None` if it may not."""
    return next((reason for patterns, reason in _rows() if patterns.matches(path)), None)


def unite_device_files(shards: Iterable[Shard], problems: list[RocwheelError]) -> list[ShardFile]:
    """Return the device files of all shards. Equal files at a path are counted once; different files are a problem.

    The contents of each file are also checked against the file's name and artifact.
    """
    chosen: dict[tuple[ArtifactName, str], ShardFile] = {}
    for file in (file for shard in shards for file in shard.files if not file.is_host):
        first = chosen.setdefault(file.key, file)
        if first is file:
            problems += _content_problems(file)
        elif not _is_same(first, file):
            found = f"differs from {first.place}, but both files are for {file.artifact.target}"
            remedy = "Remove the target from one of the builds."
            problems.append(InputError(file.place, found, expected="only one file, or identical files", remedy=remedy))
    return list(chosen.values())


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
            (
                f"is for {named.target} according to its name, but is in the artifact {file.source}, "
                f"which is for {file.artifact.target}"
            ),
            expected="one target",
        )
    if file.member.source is not None:
        with file.member.source.view() as data:
            yield from check_kernel_file(data, file.path, name=file.place)


def find_missing_targets(shards: Sequence[Shard]) -> tuple[MissingTarget, ...]:
    """Return targets that artifacts with device files lack, even though other artifacts in their shard have them."""
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


def check_declared(
    shards: Sequence[Shard], problems: list[RocwheelError], *, allow_missing: bool
) -> list[MissingTarget]:
    """Return the targets that shards declare but lack. Unless that is allowed, add errors to ``problems`` instead.

    Shards that declare the same targets are parts of one build, so together they must contain the files for these
    targets. Returns an empty list if no shard has target-specific files, because all device code might be inside
    libraries.
    """
    named: dict[frozenset[str], list[tuple[Shard, ShardFile]]] = {}
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
    return missing


def _lack(file: ShardFile, absent: Sequence[str], places: Sequence[str]) -> RocwheelError:
    verb, is_one = "has" if len(places) == 1 else "have", len(absent) == 1
    found = f"lists {', '.join(absent)}, but {', '.join(places)} {verb} no files for {'it' if is_one else 'them'}"
    remedy = "Check that the build is complete. To merge the shards anyway, use --allow-missing."
    return InputError(file.place, found, expected="a file for each target", remedy=remedy)


LARGEST = 64 << 20
"""The size limit for a text file or table, in bytes. Real files are smaller than one million bytes."""

Text = tuple[str, bytes]
"""The name of a file in messages, and its bytes."""


def unite_lines(texts: Sequence[Text]) -> bytes:
    """Return all lines of all texts, sorted and without duplicates."""
    lines = {line for _, data in texts for line in data.splitlines() if line.strip()}
    return b"".join(line + b"\n" for line in sorted(lines))


def unite_maps(tables: Sequence[Text]) -> bytes:
    """Return a msgpack map with all entries, sorted by key.

    Raises `InputError` if a table is not a msgpack map, and if a key has different values in two tables.
    """
    united: dict[str, msgspec.Raw] = {}
    origin: dict[str, str] = {}
    for name, data in tables:
        table: dict[str, msgspec.Raw] = _decode(name, data, dict[str, msgspec.Raw])
        for key, value in table.items():
            if key in united and _decode(origin[key], united[key]) != _decode(name, value):
                raise InputError(
                    name,
                    f"differs from {origin[key]} in the value of {key!r}",
                    expected="the same value in all files",
                )
            united.setdefault(key, value)
            origin.setdefault(key, name)
    return msgspec.msgpack.encode({key: united[key] for key in sorted(united)})


def _decode(name: str, data: bytes | msgspec.Raw, type_: Any = Any) -> Any:
    try:
        return msgspec.msgpack.decode(data, type=type_)
    # Values are copied without decoding, because they may be damaged or nested too deeply.
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as e:
        raise InputError(name, f"is not a msgpack map ({e})", expected="a map with a key for each target") from e


def unite_dist_info(texts: Sequence[Text]) -> bytes:
    """Return the first file with the targets of all files. Raises the same errors as `declared_targets`."""
    targets = dict.fromkeys(target for text in texts for target in declared_targets(*text))
    return with_declared_targets(*texts[0], targets)


_SPLIT_FIRST = (
    "First, split the stage folders of each build's artifacts with 'rocwheel device split', then merge the results."
)
_DIFFERENT_BUILDS = (
    "Merge builds of the same commit with the same options, or use --may-differ for files that may differ."
)


_HARMLESS = frozenset({HostDifference.BUILD_ID.value, HostDifference.LAYOUT.value})
"""Differences that are acceptable in any library.

The archives contain the device code, so its original position doesn't matter.
"""


class HostFiles(msgspec.Struct, frozen=True):
    """The chosen host files, files with new content, the differences, and the problems."""

    files: tuple[ShardFile, ...]
    united: dict[tuple[ArtifactName, str], bytes]
    """The new content of chosen files, keyed by the file's key."""
    differences: tuple[ShardDifference, ...]
    problems: tuple[RocwheelError, ...]


def choose_host_files(primary: Shard, others: Sequence[Shard], accepted: PathPatterns | None) -> HostFiles:
    """Compare the host files of all shards. Differences are problems unless they are harmless or match ``accepted``."""
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
        self.differences: list[ShardDifference] = []
        self.problems: list[RocwheelError] = []
        self._chosen = chosen
        self._accepted = accepted
        self._others: dict[tuple[ArtifactName, str], list[ShardFile]] = {}

    def add(self, shard: Shard) -> None:
        """Compare a shard's host files with the chosen files, and record files that exist on only one side."""
        theirs = {file.key: file for file in shard.files if file.is_host}
        artifacts = {artifact for artifact, _ in theirs}
        for key, file in theirs.items():
            mine = self._chosen.get(key)
            if mine is None:
                self._judge(file, file, shard, "only in this shard")
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
            self._note(mine, shard, differs, "combined")
        elif differs in _HARMLESS:
            self._note(mine, shard, differs, "primary's")
        elif differs:
            self._judge(mine, other, shard, differs)

    def _judge(self, mine: ShardFile, other: ShardFile, shard: Shard, differs: str) -> None:
        """Resolve a difference according to the tables, and report it."""
        row = shared_row(mine.path)
        is_there = mine is not other
        taken = "primary's" if is_there else "left out"
        if self._accepted and self._accepted.matches(mine.path):
            outcome = taken
        elif reason := may_differ(mine.path):
            outcome = f"{taken}: {reason}"
        elif row and is_there and row.differs in {SharedRule.LINES, SharedRule.MAPS}:
            self._others.setdefault(mine.key, []).append(other)
            outcome = "combined"
        elif row and is_there and row.differs is SharedRule.PRIMARY:
            outcome = f"primary's: {row.reason}"
        else:
            self.problems.append(_problem(mine, other, differs, row.reason if row else ""))
            outcome = "refused"
        self._note(mine, shard, differs, outcome)

    def _note(self, file: ShardFile, shard: Shard, differs: str, outcome: str) -> None:
        self.differences.append(ShardDifference(file.path, shard.location, differs, outcome))

    def unite(self) -> None:
        """Create the files that combine the contents from all shards."""
        for key, others in self._others.items():
            mine = self._chosen[key]
            try:
                self.united[key] = _uniter(mine.path)([_text(file) for file in (mine, *others)])
            except RocwheelError as e:
                self.problems.append(e)


def _difference(mine: ShardFile, other: ShardFile) -> str:
    """Return the difference between two files with the same path, or an empty string."""
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
        found = "is a host file that the primary shard doesn't have"
        return InputError(
            other.place, found, remedy="Choose another primary shard, or exclude the file with --may-differ."
        )
    found = f"differs from {mine.place} in its {differs}"
    if differs == HostDifference.DEVICE_CODE.value:
        return InputError(other.place, found, expected="host files without device code", remedy=_SPLIT_FIRST)
    return InputError(other.place, found + (f", and {reason}" if reason else ""), remedy=_DIFFERENT_BUILDS)


def _require_same_build(mine: ShardFile, other: ShardFile) -> None:
    one, two = (_manifest(file) for file in (mine, other))
    for field in ("rocm_version", "rocm_package_version", "the_rock_commit", "flags"):
        here, there = getattr(one, field), getattr(two, field)
        if here != there:
            found = f"has {field} {there!r}, but {mine.place} has {here!r}"
            raise InputError(other.place, found, expected="parts of the same build", remedy=_DIFFERENT_BUILDS)


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
    assert source is not None, "links are not combined"
    if source.size > LARGEST:
        raise InputError(file.place, f"has {source.size} bytes", expected=f"at most {LARGEST} bytes in a file to merge")
    return file.place, source.read()
