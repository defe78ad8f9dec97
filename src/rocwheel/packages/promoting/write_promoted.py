"""Writes promoted distributions: what a wheel holds is copied as it is packed, but for the few changed files."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.core.writing import safe_mode
from rocwheel.distributions.content.content import BytesContent
from rocwheel.distributions.formats.record import parse_record
from rocwheel.distributions.formats.sdist import write_sdist
from rocwheel.distributions.formats.write_wheel import write_wheels
from rocwheel.distributions.sbom.bill import SBOM_NAME
from rocwheel.distributions.zip.directory import read_directory
from rocwheel.distributions.zip.dist_info import SIGNATURES
from rocwheel.distributions.zip.reader import digest_member, read_member
from rocwheel.installed.check_record import wheel_record_problems
from rocwheel.installed.tree import Distribution, InstalledFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor
    from pathlib import Path

    from rocwheel.core.progress import Progress
    from rocwheel.distributions.formats.source_date import SourceDate
    from rocwheel.distributions.zip.reader import ZipMember
    from rocwheel.packages.promoting.candidates import Candidate
    from rocwheel.packages.promoting.promotion import Promotion

__all__ = ["write_promoted"]


def write_promoted(
    promotion: Promotion, folder: Path, executor: Executor, source_date: SourceDate, progress: Progress
) -> Path:
    """Write one distribution to its place below ``folder`` and return its path.

    Raises `InputError`, or `ProblemsError`, for damaged members, and for a wheel whose RECORD is not true of them: with
    a true one, the new wheel would vouch for files that somebody changed.
    """
    path = folder / promotion.place
    if promotion.dist_info:
        _write_wheel(promotion, path, executor, source_date, progress)
        _check_record(promotion, path)
    else:
        stem = path.name.removesuffix(".tar.gz")
        write_sdist(path, stem, {**promotion.candidate.files, **promotion.changed}, mtime=source_date.seconds)
    return path


def _write_wheel(
    promotion: Promotion, path: Path, executor: Executor, source_date: SourceDate, progress: Progress
) -> None:
    candidate = promotion.candidate
    left_out = {f"{candidate.dist_info}/{name}" for name in ("RECORD", *SIGNATURES)}
    metadata: dict[str, bytes] = {}
    with write_wheels(executor, source_date.zip_time, progress=progress) as packer:
        wheel = packer.open(path, dist_info=promotion.dist_info)
        for member in candidate.members.values():
            if member.name in left_out:
                continue
            changed = promotion.changed.get(member.name)
            if _is_metadata(member, candidate):
                metadata[member.name.partition("/")[2]] = read_member(member) if changed is None else changed
            elif changed is None:
                wheel.add_packed(
                    msgspec.structs.replace(member, name=promotion.renamed(member.name)), safe_mode(member.mode)
                )
            else:
                wheel.add(promotion.renamed(member.name), safe_mode(member.mode), BytesContent(changed))
        wheel.close(metadata)


def _is_metadata(member: ZipMember, candidate: Candidate) -> bool:
    """Return whether a member is a file of ``.dist-info`` itself or a bill: the format wants these at a wheel's end."""
    places = (candidate.dist_info, f"{candidate.dist_info}/{SBOM_NAME.partition('/')[0]}")
    return member.name.rpartition("/")[0] in places


def _check_record(promotion: Promotion, path: Path) -> None:
    """Compare the old RECORD with the old members, whose digests are in the new RECORD where they were copied."""
    candidate = promotion.candidate
    source = str(candidate.path)
    old = candidate.members.get(f"{candidate.dist_info}/RECORD")
    if old is None:
        raise InputError(source, "has no RECORD", expected="a wheel, which has one", remedy="Build it again.")
    owner = Distribution(
        name=candidate.name,
        version=candidate.version,
        source=source,
        dist_info=candidate.dist_info,
        record=parse_record(read_member(old), old.source),
    )
    problems = [
        InputError(source, problem.found, remedy="It is damaged: build or download it again.")
        for problem in wheel_record_problems(owner, _old_files(promotion, path))
        if problem.kind not in {"spelling", "algorithm"}
    ]
    raise_all(source, problems)


def _old_files(promotion: Promotion, path: Path) -> Iterator[InstalledFile]:
    candidate = promotion.candidate
    source = str(candidate.path)
    written = _written_digests(path, f"{promotion.dist_info}/RECORD")
    for name, member in candidate.members.items():
        copied = None if name in promotion.changed else written.get(promotion.renamed(name))
        sha256 = copied or digest_member(member).sha256
        yield InstalledFile(path=name, distribution=source, source=f"{source}!{name}", size=member.size, sha256=sha256)


def _written_digests(path: Path, record: str) -> dict[str, bytes]:
    """Return the SHA-256 of each member of a wheel that was just written, by its RECORD."""
    text = next(read_member(member) for member in read_directory(path) if member.name == record)
    rows = {entry.path: entry.hash.partition("=")[2] for entry in parse_record(text, record)}
    return {name: base64.urlsafe_b64decode(f"{digest}==") for name, digest in rows.items() if digest}
