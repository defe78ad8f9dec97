"""Whether every worker can read the inputs and use the exchange, asked before anything is built."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.counting import first_of
from rocwheel.foundation.errors import RocwheelError, WorkError
from rocwheel.foundation.files.file_stamp import FileStamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.cluster.seam import Cluster
    from rocwheel.packages.clustered.exchange import Exchange

__all__ = ["AccessError", "check_access"]


class AccessError(WorkError):
    """A worker that can't read an input, or can't use the exchange."""


class _Missing(msgspec.Struct, frozen=True):
    path: str
    why: str


def check_access(cluster: Cluster, exchange: Exchange, inputs: Mapping[str, FileStamp]) -> None:
    """Ask every worker for the inputs, files with their stamps, and to read and write the exchange.

    Raises `AccessError` for a worker that can't, `ProblemsError` for several; each names the worker and the input.
    """
    store = exchange.store()
    store.put("probes/from-client", b"probe", create=False)
    shared = [(path, stamp.for_any_machine()) for path, stamp in sorted(inputs.items())]
    answers = cluster.ask(_look, exchange, shared)
    problems = [problem for worker, answer in sorted(answers.items()) for problem in _problems(worker, answer)]
    raise_all(cluster.address, problems)
    for worker, name in answers.items():
        _require_seen(exchange, worker, name)


def _require_seen(exchange: Exchange, worker: str, name: str) -> None:
    try:
        exchange.store().head(name)
    except RocwheelError as e:
        found = f"writes to another {exchange.place} than this machine reads ({e})"
        raise AccessError(worker, found, remedy="Name a folder that all machines share, or an s3:// URL.") from e


def _look(exchange: Exchange, inputs: Sequence[tuple[str, FileStamp]]) -> str | list[_Missing]:
    """Return what this worker can't read, or the name of what it has written into the exchange."""
    try:
        store = exchange.store()
        store.read("probes/from-client")
        name = f"probes/{uuid.uuid4().hex}"
        store.put(name, b"probe", create=False)
    except RocwheelError as e:
        return [_Missing(exchange.place, str(e))]
    return [missing for path, stamp in inputs for missing in _missing(path, stamp)] or name


def _missing(path: str, stamp: FileStamp) -> Iterator[_Missing]:
    try:
        with Path(path).open("rb"):
            pass
        there = FileStamp.at(Path(path)).for_any_machine()
    except OSError as e:
        yield _Missing(path, e.strerror or str(e))
        return
    except RocwheelError as e:
        yield _Missing(path, str(e))
        return
    if there != stamp:
        yield _Missing(path, "is another file, by its size or time, than on this machine")


def _problems(worker: str, answer: object) -> Iterator[AccessError]:
    if isinstance(answer, str):
        return
    if not isinstance(answer, list):
        yield AccessError(worker, f"failed to look at the inputs ({answer!r})")
        return
    named = first_of([f"{missing.path} ({missing.why})" for missing in answer])
    remedy = "Give the worker that folder under the same path, or build into a store (--dest-dir s3://BUCKET/PREFIX)."
    yield AccessError(worker, f"can't use {named}", remedy=remedy)
