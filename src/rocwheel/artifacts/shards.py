"""The artifacts of several builds, one per family of GPUs: host files once, device files of all."""

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
    """A file or symlink of a shard, and the artifact in which the merged set has it."""

    artifact: ArtifactName
    """With the target ``generic``, or that of one GPU, without features."""
    stage: str
    member: Member
    source: ArtifactName
    location: str
    """The folder or archive it was read from."""

    @property
    def path(self) -> str:
        """Where it stands in the merged prefix."""
        return self.member.path[len(self.stage) + 1 :]

    @property
    def place(self) -> str:
        """What to call it in a message."""
        return place(self.location, self.member.path)

    @property
    def is_host(self) -> bool:
        """Whether it is for all GPUs."""
        return self.artifact.target == GENERIC

    @property
    def key(self) -> tuple[ArtifactName, str]:
        """Its place in the merged set: two shards' files with the same key are one file."""
        return self.artifact, self.member.path


class Shard(msgspec.Struct, frozen=True):
    """One build: where it is, its artifacts, and their files, sorted by their place in the merged set."""

    location: str
    artifacts: tuple[Artifact, ...]
    files: tuple[ShardFile, ...]

    @property
    def targets(self) -> frozenset[str]:
        """The targets that it has a file for."""
        return frozenset(file.artifact.target for file in self.files if not file.is_host)


def sort_shard(location: str, artifacts: Sequence[Artifact]) -> Shard:
    """Return a shard with each file in the artifact that the merged set has it in.

    In an artifact of one target all files stay: a file there may be known by its artifact alone. In those of all
    targets, and of a family of them, which hold host files too, a file is where the table of kernel files says.
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
    """Return the target of an artifact of one target; empty for those of several."""
    if name.target == GENERIC or is_family(name.target):
        return ""
    return processor_of(name.target)


def _target_of(path: str) -> str:
    found = classify_path(path)
    # Names of artifacts hold no underscore; the names of packages have a dash there, too.
    return found.target.replace("_", "-") if found else GENERIC


class MergedArtifact(msgspec.Struct, frozen=True):
    """One artifact of the merged set: its files and links, their bytes, and the shards they come from."""

    name: str
    files: int
    bytes: int
    shards: tuple[str, ...]


class ShardDifference(msgspec.Struct, frozen=True):
    """A file for all GPUs that isn't the same in all shards, and what was done."""

    path: str
    shard: str
    """The shard that differs from the primary."""
    differs: str
    """In what: ``build id``, ``bytes``, ``absent`` and the like."""
    outcome: str


class MissingTarget(msgspec.Struct, frozen=True):
    """A target for which an artifact with device files has none, though its shard was built for it."""

    artifact: str
    """Empty for all artifacts of a shard that says it was built for the target."""
    target: str
    shards: tuple[str, ...]


class MergeReport(msgspec.Struct, frozen=True):
    """What a merge found and made; ``dest_dir`` is empty where nothing was to be written."""

    primary: str
    shards: tuple[str, ...]
    targets: tuple[str, ...]
    artifacts: tuple[MergedArtifact, ...]
    differences: tuple[ShardDifference, ...]
    missing: tuple[MissingTarget, ...]
    unknown: tuple[str, ...]
    """Files named like kernel files that no row of the table knows: their artifact alone says what they are for."""
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
    """Return why a path of the prefix may hold other bytes in other shards; none where it may not."""
    return next((reason for patterns, reason in _rows() if patterns.matches(path)), None)


def unite_device_files(shards: Iterable[Shard], problems: list[RocwheelError]) -> list[ShardFile]:
    """Return the device files of all shards; the same bytes at one place count once, other bytes are a problem.

    What a file contains is compared with what it and its artifact are called.
    """
    chosen: dict[tuple[ArtifactName, str], ShardFile] = {}
    for file in (file for shard in shards for file in shard.files if not file.is_host):
        first = chosen.setdefault(file.key, file)
        if first is file:
            problems += _content_problems(file)
        elif not _is_same(first, file):
            found = f"is not the same as {first.place}, and both are for {file.artifact.target}"
            remedy = "Take the target out of one of the builds."
            problems.append(InputError(file.place, found, expected="one file, or the same bytes", remedy=remedy))
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
            f"is for {named.target} by its name, and in the artifact {file.source}, for {file.artifact.target}",
            expected="one target",
        )
    if file.member.source is not None:
        with file.member.source.view() as data:
            yield from check_kernel_file(data, file.path, name=file.place)


def find_missing_targets(shards: Sequence[Shard]) -> tuple[MissingTarget, ...]:
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


def check_declared(
    shards: Sequence[Shard], problems: list[RocwheelError], *, allow_missing: bool
) -> list[MissingTarget]:
    """Return the targets that shards say they were built for and lack, among ``problems`` where that is not allowed.

    Shards that name the same targets are parts of one build, which has the files of all of them. Nothing is said where
    no shard has files of one target: all device code may be inside of libraries.
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
    verb = "has" if len(places) == 1 else "have"
    found = f"names {', '.join(absent)}, for which {', '.join(places)} {verb} no file"
    remedy = "Is the build whole? To merge it as it is, give --allow-missing."
    return InputError(file.place, found, expected="a file for each target", remedy=remedy)


LARGEST = 64 << 20
"""Bytes of a text or table that is read; real ones have less than one million."""

Text = tuple[str, bytes]
"""What to call a file in messages, and its bytes."""


def unite_lines(texts: Sequence[Text]) -> bytes:
    """Return all lines of all texts, each once and sorted."""
    lines = {line for _, data in texts for line in data.splitlines() if line.strip()}
    return b"".join(line + b"\n" for line in sorted(lines))


def unite_maps(tables: Sequence[Text]) -> bytes:
    """Return the msgpack map with the entries of all, in the order of their keys.

    Raises `InputError` for a table that is no such map, and for a key that two tables have with other values.
    """
    united: dict[str, msgspec.Raw] = {}
    origin: dict[str, str] = {}
    for name, data in tables:
        table: dict[str, msgspec.Raw] = _decode(name, data, dict[str, msgspec.Raw])
        for key, value in table.items():
            if key in united and _decode(origin[key], united[key]) != _decode(name, value):
                raise InputError(name, f"has another value for {key!r} than {origin[key]}", expected="the same in all")
            united.setdefault(key, value)
            origin.setdefault(key, name)
    return msgspec.msgpack.encode({key: united[key] for key in sorted(united)})


def _decode(name: str, data: bytes | msgspec.Raw, type_: Any = Any) -> Any:
    try:
        return msgspec.msgpack.decode(data, type=type_)
    # A value that stays as it is isn't read, and may be damaged or nested too deeply.
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as e:
        raise InputError(name, f"is not a msgpack map ({e})", expected="one with a key for each target") from e


def unite_dist_info(texts: Sequence[Text]) -> bytes:
    """Return the first file with the targets that any declares; raises what `declared_targets` does."""
    targets = dict.fromkeys(target for text in texts for target in declared_targets(*text))
    return with_declared_targets(*texts[0], targets)


_SPLIT_FIRST = "Split the stage folders of each build's artifacts first, with `rocwheel device split`, and merge these."
_DIFFERENT_BUILDS = "Merge builds of one commit with one set of options; --may-differ names files that may differ."


_HARMLESS = frozenset({HostDifference.BUILD_ID.value, HostDifference.LAYOUT.value})
"""What may differ in any library: archives hold the device code, wherever its space was."""


class HostFiles(msgspec.Struct, frozen=True):
    """The chosen host files, those with new content, what differed, and what can't be merged."""

    files: tuple[ShardFile, ...]
    united: dict[tuple[ArtifactName, str], bytes]
    """New content by the key of a chosen file."""
    differences: tuple[ShardDifference, ...]
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
        self.differences: list[ShardDifference] = []
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
        self.differences.append(ShardDifference(file.path, shard.location, differs, outcome))

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
