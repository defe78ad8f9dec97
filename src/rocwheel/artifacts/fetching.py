"""Fetches artifact archives from a store: selects archives, finds their checksums, and downloads them."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import ARCHIVE_SUFFIXES, ArtifactName
from rocwheel.core.errors import InputError, RocwheelError, write_error
from rocwheel.core.hashing import hash_file
from rocwheel.core.messages import first_of, quoted
from rocwheel.core.part_file import Expected, receive
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import attempt_all, map_collecting, open_workers, raise_all, serialized, worker_count
from rocwheel.stores.store import StoredFile
from rocwheel.targets.compatibility import GENERIC

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rocwheel.stores.store import Store


CHECKSUM_SUFFIXES = (".sha256sum", ".sha256")
"""The suffixes of a checksum file for a single file."""
CHECKSUM_FILES = ("SHA256SUMS", "sha256sums.txt", "sha256sum.txt")
"""The names of checksum files that cover all files of a folder."""
MAX_CHECKSUMS_SIZE = 16 << 20
"""The size limit in bytes, which is enough for a hundred thousand files."""

_LINE = re.compile(r"(?P<escaped>\\?)(?P<digest>[0-9A-Fa-f]{64})(?:[ \t]+\*?(?P<name>.+))?")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "r": "\r"}
_BSD_LINE = re.compile(r"SHA256 ?\((?P<name>.+)\) ?= ?(?P<digest>[0-9A-Fa-f]{64})")


def parse_checksums(data: bytes, source: str, only: str = "") -> dict[str, str]:
    """Return the SHA-256 of each listed file in lowercase hexadecimal, keyed by name.

    ``only`` is the file's name for a digest that is listed without a name. Names include their folders;
    `match_checksums` resolves them. Ignores empty lines and lines that begin with ``#``. Raises `InputError` for any
    other line, and if a name has two different digests.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, digest = _parse_line(text, only) or ("", "")
        if not name:
            expected = "a SHA-256 hash in hexadecimal and a file name"
            raise InputError(source, f"is invalid on line {number}: {quoted(text)}", expected=expected)
        if found.setdefault(name, digest) != digest:
            raise InputError(source, f"has two different checksums for {quoted(name)}, the second on line {number}")
    return found


def _parse_line(text: str, only: str) -> tuple[str, str] | None:
    match = _LINE.fullmatch(text) or _BSD_LINE.fullmatch(text)
    if match is None:
        return None
    name = match["name"] or only
    if match.groupdict().get("escaped"):
        name = _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), name)
    return (posixpath.normpath(name) if name else ""), match["digest"].lower()


def match_checksums(listed: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Return the listed digests of a folder's files, keyed by their ``names`` in the folder.

    An exact match is preferred. Because lists are often created elsewhere, a listed name with additional parent folders
    also matches. A name without its folders also matches if no other file has the same last part. Files with
    conflicting digests never match.

    >>> match_checksums({"out/gfx906/x": "1", "gfx942/x": "2"}, ["gfx906/x", "gfx942/x"])
    {'gfx906/x': '1', 'gfx942/x': '2'}
    """
    alike: dict[str, list[str]] = defaultdict(list)
    for name in listed:
        alike[posixpath.basename(name)].append(name)
    numbers = Counter(map(posixpath.basename, names))
    found: dict[str, str] = {}
    for name in names:
        base = posixpath.basename(name)
        near = [other for other in alike.get(base, ()) if _is_meant(other, name, is_lone=numbers[base] == 1)]
        digests = {listed[name]} if name in listed else {listed[other] for other in near}
        if len(digests) == 1:
            found[name] = digests.pop()
    return found


def _is_meant(listed: str, name: str, *, is_lone: bool) -> bool:
    return f"/{listed}".endswith(f"/{name}") or (is_lone and f"/{name}".endswith(f"/{listed}"))


PACKAGED_COMPONENTS = ("lib", "run", "dev", "dbg", "doc")
"""The components that go into packages. The SDK's tests aren't included."""
_NAMED = 12
"""The maximum number of targets or components that a message lists."""


class StoredArchive(msgspec.Struct, frozen=True):
    """An artifact archive in a store."""

    name: ArtifactName
    stored: StoredFile


class Wanted(msgspec.Struct, frozen=True):
    """The archives of a store to fetch. An empty tuple means no restriction."""

    targets: tuple[str, ...] = ()
    """The GPU targets, written as in messages."""
    components: tuple[str, ...] = PACKAGED_COMPONENTS
    names: tuple[str, ...] = ()
    """The names of artifacts, such as ``blas``."""


def find_stored_archives(files: Iterable[StoredFile], place: str) -> tuple[StoredArchive, ...]:
    """Return the artifact archives at the top level of a store, sorted by name.

    If an artifact exists in several formats, the format that unpacks fastest is returned. Raises `InputError` about
    ``place`` if there are no archives.
    """
    found: dict[ArtifactName, StoredArchive] = {}
    for stored in files:
        for suffix in reversed(ARCHIVE_SUFFIXES):
            name = _artifact_name(stored.name, suffix)
            if name and (suffix == ARCHIVE_SUFFIXES[-1] or name not in found):
                found[name] = StoredArchive(name, stored)
    if not found:
        expected = f"archives named {{name}}_{{component}}_{{target}}{' or '.join(ARCHIVE_SUFFIXES)}"
        raise InputError(
            place, "does not contain any artifact archives", expected=expected, remedy="Check the URL or path."
        )
    return tuple(found[name] for name in sorted(found))


def choose_archives(
    archives: Sequence[StoredArchive], wanted: Wanted, serving: Mapping[str, Callable[[str], bool]], place: str
) -> tuple[StoredArchive, ...]:
    """Return the wanted archives.

    ``serving`` maps each wanted target to a function that returns whether an artifact's target is suitable for it.
    Raises `InputError` for each name, component, and target for which ``place`` has no archive.
    """
    raise_all(place, list(_absences(archives, wanted, serving, place)))
    chosen = [archive for archive in archives if _is_wanted(archive.name, wanted, serving)]
    if not chosen:
        remedy = "Choose other components or targets. 'rocwheel artifacts fetch URL --dry-run' lists them."
        raise InputError(place, "has no archive that matches all options", remedy=remedy)
    return tuple(chosen)


def _artifact_name(file_name: str, suffix: str) -> ArtifactName | None:
    if not file_name.endswith(suffix):
        return None
    try:
        return ArtifactName.parse(file_name.removesuffix(suffix))
    except InputError:
        return None


def _is_wanted(name: ArtifactName, wanted: Wanted, serving: Mapping[str, Callable[[str], bool]]) -> bool:
    is_for_target = not wanted.targets or any(serving[target](name.target) for target in wanted.targets)
    is_of_kind = not wanted.components or name.component in wanted.components
    return is_for_target and is_of_kind and (not wanted.names or name.name in wanted.names)


def _absences(
    archives: Sequence[StoredArchive], wanted: Wanted, serving: Mapping[str, Callable[[str], bool]], place: str
) -> Iterator[InputError]:
    names = {archive.name.name for archive in archives}
    components = {archive.name.component for archive in archives}
    targets = {archive.name.target for archive in archives} - {GENERIC}
    for name in wanted.names:
        if name not in names:
            yield _absence(place, f"has no artifact {name!r}", names)
    if wanted.components != PACKAGED_COMPONENTS:
        for component in wanted.components:
            if component not in components:
                yield _absence(place, f"has no artifact with the component {component!r}", components)
    for target in wanted.targets if targets else ():
        if not any(serving[target](label) for label in targets):
            yield _absence(place, f"has no artifact that serves {target}", targets)


def _absence(place: str, found: str, known: Iterable[str]) -> InputError:
    return InputError(place, found, remedy=f"Available: {first_of(sorted(known), _NAMED)}.")


class FetchedArchive(msgspec.Struct, frozen=True):
    """A wanted archive that is now in the folder."""

    name: str
    """The file name."""
    bytes: int
    sha256: str
    verified: str
    """How the archive was verified: ``sha256``, ``size`` if the store has no checksum, or ``nothing``."""
    is_new: bool
    """Whether this run fetched the archive."""


def read_checksums(store: Store, files: Iterable[StoredFile], wanted: Iterable[StoredFile]) -> dict[str, str]:
    """Return the SHA-256 of each ``wanted`` file for which the store has a checksum, keyed by name.

    Looks for ``NAME.sha256sum`` next to each file, for ``SHA256SUMS`` in the store and in the file's folder, and in the
    store's own metadata. Raises `InputError` if checksum files can't be read or contradict each other.
    """
    present = {file.name for file in files}
    wanted = tuple(wanted)
    names = {stored.name for stored in wanted}
    with open_workers(_WORKERS) as executor:
        futures = [executor.submit(_read_list, store, name, present) for name in _lists(names) if name in present]
        futures += [
            executor.submit(_read_beside, store, name + suffix, name)
            for name in names for suffix in CHECKSUM_SUFFIXES if name + suffix in present
        ]  # fmt: skip
    found = {stored.name: stored.sha256 for stored in wanted if stored.sha256}
    for part in map_collecting(store.url, Future.result, futures):
        for name, digest in part.items():
            if name in names and found.setdefault(name, digest) != digest:
                remedy = "Report this problem to the publisher."
                raise InputError(store.place(name), "has several different checksums in the store", remedy=remedy)
    return found


_WORKERS = 8
"""The number of small files that are requested in parallel."""


def _lists(names: Iterable[str]) -> list[str]:
    """Return the possible names of checksum lists at the top of the store and in the folders of the files."""
    folders = {"", *map(posixpath.dirname, names)}
    return [posixpath.join(folder, name) for folder in sorted(folders) for name in CHECKSUM_FILES]


def _read_list(store: Store, name: str, present: Collection[str]) -> dict[str, str]:
    """Return the checksums of the files in and below the folder of a list, keyed by their name in the store."""
    start = name[: len(name) - len(posixpath.basename(name))]
    inside = [other.removeprefix(start) for other in present if other.startswith(start)]
    return {start + other: digest for other, digest in match_checksums(_read_file(store, name), inside).items()}


def _read_beside(store: Store, name: str, only: str) -> dict[str, str]:
    """Return the checksum of a single file from the checksum file next to it."""
    found = match_checksums(_read_file(store, name, only), (only,))
    if not found:
        raise InputError(
            store.place(name), f"has no checksum for {only}", remedy="Report this problem to the publisher."
        )
    return found


def _read_file(store: Store, name: str, only: str = "") -> dict[str, str]:
    data = bytearray()
    for block in store.stream(name):
        data += block
        if len(data) > MAX_CHECKSUMS_SIZE:
            expected = f"a list of checksums with at most {MAX_CHECKSUMS_SIZE} bytes"
            raise InputError(store.place(name), "is too long", expected=expected)
    return parse_checksums(bytes(data), store.place(name), only)


def with_sizes(store: Store, files: Iterable[StoredFile]) -> tuple[StoredFile, ...]:
    """Return the files with their sizes. If the listing doesn't include a file's size, query the store."""
    with open_workers(_WORKERS) as executor:
        return tuple(executor.map(lambda file: file if file.size >= 0 else store.head(file.name), files))


def fetch_files(
    store: Store,
    files: Sequence[StoredFile],
    dest_dir: Path,
    checksums: dict[str, str],
    *,
    jobs: int = 4,
    progress: Progress = SILENT,
) -> tuple[FetchedArchive, ...]:
    """Fetch files into ``dest_dir``, ``jobs`` at a time, and return the results in order.

    A file appears only when it is complete and verified. An existing file is kept if it matches the checksum or,
    without a checksum, the size and date in the store. An interrupted download is resumed. Failures are raised together
    after all other files are complete (`ProblemsError` for several failures): `StoreError` if the store fails,
    `InputError` if the bytes don't match, and `WorkError` if writing fails.
    """
    try:
        dest_dir.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise write_error(dest_dir, e) from e
    advance = serialized(progress.advance)
    problems: list[RocwheelError] = []
    progress.begin("fetching", sum(max(stored.size, 0) for stored in files))
    try:
        with open_workers(worker_count(jobs)) as executor:
            fetch = partial(_fetch, store, dest_dir, checksums, advance)
            futures = [executor.submit(fetch, stored) for stored in files]
            fetched = attempt_all(Future.result, futures, problems)
    finally:
        progress.end()
    raise_all(store.url, problems)
    return tuple(fetched)


def _fetch(
    store: Store, dest_dir: Path, checksums: dict[str, str], advance: Callable[[int], None], stored: StoredFile
) -> FetchedArchive:
    path, sha256 = dest_dir / stored.name, checksums.get(stored.name, "")
    verified = "sha256" if sha256 else "size" if stored.size >= 0 else "nothing"
    present = _present(path, stored, sha256)
    if present:
        advance(max(stored.size, 0))
        return FetchedArchive(stored.name, path.stat().st_size, present, verified, is_new=False)
    expected = Expected(
        source=store.place(stored.name),
        size=stored.size if stored.size >= 0 else None,
        version=stored.e_tag or (stored.modified.isoformat() if stored.modified else ""),
        sha256=sha256,
        modified=round(stored.modified.timestamp() * 10**6) * 1000 if stored.modified else None,
    )
    digest = receive(path, expected, partial(store.stream, stored.name, e_tag=stored.e_tag), advance)
    return FetchedArchive(stored.name, path.stat().st_size, digest, verified, is_new=True)


def _present(path: Path, stored: StoredFile, sha256: str) -> str:
    """Return the SHA-256 of the existing file if it is the stored archive; otherwise, return an empty string."""
    try:
        status = path.stat()
        if stored.size not in {-1, status.st_size}:
            return ""
        if not sha256 and not (stored.modified and int(status.st_mtime) == int(stored.modified.timestamp())):
            return ""
        found = hash_file(path)
    except OSError:
        return ""
    return found if sha256 in {"", found} else ""
