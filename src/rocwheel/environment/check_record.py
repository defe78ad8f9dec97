"""Compares RECORD with the files that it lists, in wheels and environments (:pep:`376`, :pep:`427`)."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.wheels.record import RecordProblem, absent_row, find_record_problems, find_row_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.environment.tree import Distribution, InstalledFile, Tree
    from rocwheel.wheels.record import RecordEntry


def wheel_record_problems(owner: Distribution, files: Iterable[InstalledFile]) -> Iterator[RecordProblem]:
    """Yield the problems in the RECORD of a wheel with the members ``files``. Files without a hash aren't compared."""
    members = {file.member: file for file in files}
    sizes = {name: file.size for name, file in members.items()}

    def digest(name: str, algorithm: str) -> bytes | None:
        return members[name].sha256 if algorithm == "sha256" else owner.other_digests.get(name)

    return find_record_problems(owner.record, sizes, owner.dist_info, digest)


def installed_record_problems(tree: Tree, owner: Distribution) -> Iterator[RecordProblem]:
    """Yield the problems in the RECORD of an installed distribution.

    Bytecode isn't compared, because interpreters write it. Files that no RECORD lists aren't reported, because their
    owner is unknown. An entry may be for a folder, which pip and uv remove with all its contents.
    """
    folders = _folders(tree)
    for path, row in sorted({entry.path: entry for entry in owner.record}.items()):
        if path.startswith(("/", "../")) or path.endswith(".pyc"):
            continue
        source = posixpath.join(posixpath.dirname(owner.source), path)
        file = tree.by_source.get(source)
        if file is not None and file.is_dangling:
            yield RecordProblem(path, "absent", "lists", f", which is a broken symlink to {file.link}")
        # pip and uv write only this algorithm.
        elif file is not None and row.algorithm == "sha256" and (problem := _hash_problem(file, row)):
            yield problem
        is_folder = not row.hash and source in folders
        if file is None and not is_folder and not any(path.startswith(f"{link}/") for link in tree.links):
            yield absent_row(path)


def _folders(tree: Tree) -> set[str]:
    """Return the folders that contain files, and their parent folders."""
    folders: set[str] = set()
    for source in tree.by_source:
        folder = posixpath.dirname(source)
        while folder and folder not in folders:
            folders.add(folder)
            folder = posixpath.dirname(folder)
    return folders


def _hash_problem(file: InstalledFile, row: RecordEntry) -> RecordProblem | None:
    return find_row_problem(msgspec.structs.replace(row, size=""), file.size, lambda _: file.sha256)
