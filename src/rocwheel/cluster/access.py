"""Whether every worker can read the files of a job, asked before it begins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import RocwheelError, WorkError
from rocwheel.core.messages import first_of
from rocwheel.core.reading import FileStamp
from rocwheel.core.workers import raise_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.cluster.seam import Cluster

__all__ = ["AccessError", "Unread", "check_files", "find_unread", "require_access"]


class AccessError(WorkError):
    """A worker that can't read a file, or can't write where it has to."""


class Unread(msgspec.Struct, frozen=True):
    """A file that a worker can't use, and why."""

    path: str
    why: str


def find_unread(files: Sequence[tuple[str, FileStamp]]) -> list[Unread]:
    """Return what this process can't read of files, which come with their stamps for any machine."""
    found = ((path, _why_unread(Path(path), stamp)) for path, stamp in files)
    return [Unread(path, why) for path, why in found if why]


def _why_unread(path: Path, stamp: FileStamp) -> str:
    try:
        with path.open("rb"):
            there = FileStamp.at(path).for_any_machine()
    except OSError as e:
        return e.strerror or str(e)
    except RocwheelError as e:
        return str(e)
    return "" if there == stamp else "is another file, by its size or time, than on this machine"


def check_files(cluster: Cluster, files: Mapping[str, FileStamp], *, remedy: str) -> None:
    """Ask every worker for files; raise `AccessError` for one that lacks some, `ProblemsError` for several."""
    shared = [(path, stamp.for_any_machine()) for path, stamp in sorted(files.items())]
    require_access(cluster, cluster.ask(find_unread, shared), remedy=remedy)


def require_access(cluster: Cluster, answers: Mapping[str, object], *, remedy: str) -> None:
    """Raise `AccessError` for a worker whose answer names files, or is an error; `ProblemsError` for several."""
    told = ((worker, _told(answer)) for worker, answer in sorted(answers.items()))
    raise_all(cluster.address, [AccessError(worker, found, remedy=remedy) for worker, found in told if found])


def _told(answer: object) -> str:
    if isinstance(answer, BaseException):
        return f"failed to look at the files ({answer!r})"
    if isinstance(answer, list) and answer:
        return f"can't use {first_of([f'{unread.path} ({unread.why})' for unread in answer])}"
    return ""
