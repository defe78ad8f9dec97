"""Compares RECORD with the files that it lists, in wheels and environments (:pep:`376`, :pep:`427`)."""

from __future__ import annotations

import base64
import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.messages import count
from rocwheel.wheels.record import find_record_gaps, spell_hash, unhashed_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.environment.tree import Distribution, InstalledFile, Tree
    from rocwheel.wheels.record import RecordEntry

_WEAK = ("md5", "sha1")


class RecordProblem(msgspec.Struct, frozen=True):
    """A problem with a path's entry: its kind, and a sentence about it."""

    path: str
    kind: str
    found: str

    @property
    def facts(self) -> tuple[str, str]:
        """The facts that distinguish the problem from other problems in the same RECORD."""
        return self.kind, self.path


def wheel_record_problems(owner: Distribution, files: Iterable[InstalledFile]) -> Iterator[RecordProblem]:
    """Yield the problems in the RECORD of a wheel with the members ``files``."""
    rows = {entry.path: entry for entry in owner.record}
    members = {file.member: file for file in files}
    gaps = find_record_gaps((entry.path for entry in owner.record), members, owner.dist_info)
    for path, number in gaps.repeated.items():
        yield RecordProblem(path, "repeated", f"RECORD lists {path} {number} times")
    yield from map(_absent, gaps.absent)
    for path in gaps.unlisted:
        yield RecordProblem(path, "unlisted", f"RECORD doesn't list {path}")
    unhashed = unhashed_paths(owner.dist_info)
    for path, row in rows.items():
        if path in members and path not in unhashed and (problem := _row_problem(row, members[path])):
            yield problem


def _absent(path: str) -> RecordProblem:
    return RecordProblem(path, "absent", f"RECORD lists {path}, which doesn't exist")


def _wrong_hash(file: InstalledFile, row: RecordEntry) -> RecordProblem:
    """Return the problem of a wrong hash, or of a correct hash in a form that installers can't read."""
    if file.sha256 is None or not (spelling := _other_spelling(row.hash.partition("=")[2], file.sha256)):
        return RecordProblem(row.path, "hash", f"RECORD has a different hash for {row.path}")
    found = f"RECORD has the hash of {row.path} {spelling}; expected URL-safe base64 without padding"
    return RecordProblem(row.path, "spelling", found)


def _other_spelling(digest: str, sha256: bytes) -> str:
    """Return how a correct digest differs from the form in :pep:`376`, or an empty string if the digest is wrong."""
    if digest.lower() == sha256.hex():
        return "in hexadecimal"
    padded = base64.urlsafe_b64encode(sha256).decode()
    standard = base64.b64encode(sha256).decode()
    if digest == padded:
        return "in base64 with padding"
    return "in base64 with '+' and '/'" if digest.rstrip("=") == standard.rstrip("=") else ""


def _row_problem(row: RecordEntry, file: InstalledFile) -> RecordProblem | None:
    if not _has_hash(file, row):
        return _wrong_hash(file, row)
    if (algorithm := row.algorithm) in _WEAK:
        found = f"RECORD has a hash of type {algorithm} for {row.path}; the weakest allowed type is sha256"
        return RecordProblem(row.path, "algorithm", found)
    if row.size not in {"", str(file.size)}:
        found = f"RECORD has the size {row.size} for {row.path}, which has {count(file.size, 'byte')}"
        return RecordProblem(row.path, "size", found)
    return None


def installed_record_problems(tree: Tree, owner: Distribution) -> Iterator[RecordProblem]:
    """Yield the problems in the RECORD of an installed distribution.

    Bytecode isn't compared, because interpreters write it. Files that no RECORD lists aren't reported, because their
    owner is unknown. An entry may name a folder, which pip and uv then remove with all its contents.
    """
    folders = _folders(tree)
    for path, row in sorted({entry.path: entry for entry in owner.record}.items()):
        if path.startswith(("/", "../")) or path.endswith(".pyc"):
            continue
        source = posixpath.join(posixpath.dirname(owner.source), path)
        file = tree.by_source.get(source)
        if file is not None and file.is_dangling:
            yield RecordProblem(path, "absent", f"RECORD lists {path}, which is a broken symlink to {file.link}")
        elif file is not None and not _has_hash(file, row):
            yield _wrong_hash(file, row)
        is_folder = not row.hash and source in folders
        if file is None and not is_folder and not any(path.startswith(f"{link}/") for link in tree.links):
            yield _absent(path)


def _folders(tree: Tree) -> set[str]:
    """Return the folders that contain files, and their parent folders."""
    folders: set[str] = set()
    for source in tree.by_source:
        folder = posixpath.dirname(source)
        while folder and folder not in folders:
            folders.add(folder)
            folder = posixpath.dirname(folder)
    return folders


def _has_hash(file: InstalledFile, row: RecordEntry) -> bool:
    """Return whether a file matches its hash in RECORD."""
    # Hashes of other algorithms are not compared: pip and uv read and write only this one.
    return file.sha256 is None or row.algorithm != "sha256" or row.hash == spell_hash(file.sha256)
