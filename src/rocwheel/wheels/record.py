"""Reads, checks, and writes a wheel's RECORD, which lists the path, hash, and size of every member (:pep:`376`)."""

from __future__ import annotations

import base64
import binascii
import csv
import io
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, first_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path


SIGNATURES = ("RECORD.jws", "RECORD.p7s")
"""The files in ``.dist-info`` that sign RECORD. RECORD doesn't list these files (:pep:`427`)."""
STRONG_HASHES = frozenset({"sha256", "sha384", "sha512"})
"""The hash algorithms that the wheel format allows for RECORD and that are available in every Python."""


def signature_paths(dist_info: str) -> frozenset[str]:
    """Return the paths of the wheel members that sign its RECORD."""
    return frozenset(f"{dist_info}/{name}" for name in SIGNATURES)


def unhashed_paths(dist_info: str) -> frozenset[str]:
    """Return the paths of the wheel members without a hash in RECORD: RECORD itself and its signatures."""
    return signature_paths(dist_info) | {f"{dist_info}/RECORD"}


class RecordRow(msgspec.Struct, frozen=True, order=True):
    """A member of a wheel: its path, its raw SHA-256, and its size in bytes."""

    path: str
    sha256: bytes
    size: int

    @property
    def hash(self) -> str:
        """The hash in the format of RECORD."""
        return spell_hash(self.sha256)


class RecordEntry(msgspec.Struct, frozen=True):
    """A row as read from RECORD: path, ``algorithm=digest``, and size."""

    path: str
    hash: str
    size: str

    @property
    def algorithm(self) -> str:
        """The hash algorithm, such as ``sha256``, or an empty string if there is no hash."""
        return self.hash.partition("=")[0]

    @property
    def digest(self) -> bytes:
        """The raw hash, or empty if the digest isn't valid URL-safe base64 without padding."""
        text = self.hash.partition("=")[2]
        try:
            return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return b""


def spell_hash(sha256: bytes) -> str:
    """Return a raw SHA-256 in the format of RECORD: ``sha256=`` and URL-safe base64 without padding."""
    return f"sha256={_urlsafe(sha256)}"


def _urlsafe(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def render_record(rows: list[RecordRow], record_path: str) -> bytes:
    """Return the text of RECORD: the rows sorted by path, and then RECORD itself without a hash and size.

    Paths are text, as in the names of wheel members. Raises `UnicodeEncodeError` if a path contains surrogates.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows((row.path, row.hash, row.size) for row in sorted(rows))
    writer.writerow((record_path, "", ""))
    return out.getvalue().encode()


MOST_ROWS = 1 << 18
"""The maximum number of rows in RECORD.

The largest RECORD in 967 published wheels has 16,235 rows (cmeel_boost 1.90.0).
"""


def parse_record(data: bytes, source: Path | str) -> tuple[RecordEntry, ...]:
    """Return the rows of RECORD; missing cells are empty.

    Bytes that aren't UTF-8 become surrogates, as in file names (:pep:`383`). Therefore, such a path matches only its
    own file.

    Raises `InputError` about ``source`` if the text isn't CSV or has more than `MOST_ROWS` rows.
    """
    remedy = "Build or fetch it again."
    rows = csv.reader(io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="surrogateescape", newline="\n"))
    try:
        found = tuple(RecordEntry(*(*row, "", "")[:3]) for row in islice(filter(None, rows), MOST_ROWS + 1))
    except csv.Error as e:
        raise InputError(source, f"can't be read ({e})", expected="CSV", remedy=remedy) from e
    if len(found) > MOST_ROWS:
        raise InputError(source, f"has more than {MOST_ROWS} rows", expected="a row for each file", remedy=remedy)
    return found


class RecordProblem(msgspec.Struct, frozen=True):
    """A path for which RECORD is wrong, the kind of problem, and the words that surround the path in a message."""

    path: str
    kind: Literal["repeated", "absent", "unlisted", "algorithm", "hash", "spelling", "size"]
    before: str
    after: str = ""

    @property
    def found(self) -> str:
        """The sentence about the path."""
        return f"RECORD {self.before} {self.path}{self.after}"

    @property
    def facts(self) -> tuple[str, str]:
        """The facts that distinguish the problem from other problems in the same RECORD."""
        return self.kind, self.path


def absent_row(path: str) -> RecordProblem:
    """Return the problem with a row whose file is missing."""
    return RecordProblem(path, "absent", "lists", ", which doesn't exist")


def find_row_problem(row: RecordEntry, size: int, digest: Callable[[str], bytes | None]) -> RecordProblem | None:
    """Return the problem with the row of an existing file, or `None` if the row is correct.

    ``digest`` hashes the file with one of the `STRONG_HASHES`. If ``digest`` returns `None`, the hash isn't compared.
    """
    if row.algorithm not in STRONG_HASHES:
        before = f"has a hash of type {row.algorithm} for" if row.algorithm else "has no hash for"
        return RecordProblem(row.path, "algorithm", before, "; expected sha256, sha384, or sha512")
    if row.size not in {"", str(size)}:
        return RecordProblem(row.path, "size", f"has the size {row.size} for", f", which has {count(size, 'byte')}")
    found, text = digest(row.algorithm), row.hash.partition("=")[2]
    if found is None or text == _urlsafe(found):
        return None
    if not (spelling := _other_spelling(text, found)):
        return RecordProblem(row.path, "hash", "has a different hash for")
    after = f" {spelling}; expected URL-safe base64 without padding"
    return RecordProblem(row.path, "spelling", "has the hash of", after)


def _other_spelling(text: str, digest: bytes) -> str:
    """Return how a correct hash differs from the form in :pep:`376`, or an empty string if the hash is wrong."""
    if text.lower() == digest.hex():
        return "in hexadecimal"
    if text.rstrip("=") == _urlsafe(digest):
        return "in base64 with padding"
    return "in base64 with '+' and '/'" if text.rstrip("=") == base64.b64encode(digest).decode().rstrip("=") else ""


def find_record_problems(
    rows: Iterable[RecordEntry], sizes: Mapping[str, int], dist_info: str, digest: Callable[[str, str], bytes | None]
) -> Iterator[RecordProblem]:
    """Yield the problems in the RECORD of a wheel whose members have these unpacked ``sizes``.

    Each member must have exactly one row, with a correct hash. RECORD and its signatures need neither a row nor a hash
    (:pep:`427`). ``digest`` hashes a member, given its name and the algorithm, as for `find_row_problem`.
    """
    listed: dict[str, list[RecordEntry]] = {}
    for row in rows:
        listed.setdefault(row.path, []).append(row)
    exempt = unhashed_paths(dist_info)
    for path, found in sorted(listed.items()):
        if len(found) > 1:
            yield RecordProblem(path, "repeated", "lists", f" {len(found)} times")
        if path not in sizes:
            yield absent_row(path)
    for path in sizes:
        if path not in listed and path not in exempt:
            yield RecordProblem(path, "unlisted", "doesn't list")
    for path, size in sizes.items():
        for row in listed.get(path, ()):
            is_exempt = path in exempt and not row.hash
            if not is_exempt and (problem := find_row_problem(row, size, partial(digest, path))):
                yield problem


_NAMED = 10
"""The maximum number of files that a message lists for one problem."""


def record_errors(source: Path | str, problems: Iterable[RecordProblem]) -> list[InputError]:
    """Return the errors about the RECORD from ``source``, one for each kind of problem."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for problem in problems:
        groups.setdefault((problem.before, problem.after), {})[problem.path] = None
    return [
        InputError(source, f"{before} {_files([*paths])}{after}", remedy="Build or download the wheel again.")
        for (before, after), paths in groups.items()
    ]


def _files(paths: list[str]) -> str:
    return paths[0] if len(paths) == 1 else f"{count(len(paths), 'file')} ({first_of(paths, _NAMED)})"
