"""Whether every worker can read the inputs and use the exchange, asked before anything is built."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from rocwheel.cluster.access import AccessError, Unread, find_unread, require_access
from rocwheel.core.errors import RocwheelError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.cluster.seam import Cluster
    from rocwheel.core.reading import FileStamp
    from rocwheel.packages.clustered.exchange import Exchange

__all__ = ["check_access"]

_REMEDY = "Give the worker that folder under the same path, or build into a store (--dest-dir s3://BUCKET/PREFIX)."


def check_access(cluster: Cluster, exchange: Exchange, inputs: Mapping[str, FileStamp]) -> None:
    """Ask every worker for the inputs, files with their stamps, and to read and write the exchange.

    Raises `AccessError` for a worker that can't, `ProblemsError` for several; each names the worker and the input.
    """
    exchange.store().put("probes/from-client", b"probe", create=False)
    shared = [(path, stamp.for_any_machine()) for path, stamp in sorted(inputs.items())]
    answers = cluster.ask(_look, exchange, shared)
    require_access(cluster, answers, remedy=_REMEDY)
    for worker, name in answers.items():
        _require_seen(exchange, worker, name)


def _require_seen(exchange: Exchange, worker: str, name: str) -> None:
    try:
        exchange.store().head(name)
    except RocwheelError as e:
        found = f"writes to another {exchange.place} than this machine reads ({e})"
        raise AccessError(worker, found, remedy="Name a folder that all machines share, or an s3:// URL.") from e


def _look(exchange: Exchange, inputs: Sequence[tuple[str, FileStamp]]) -> str | list[Unread]:
    """Return what this worker can't read, or the name of what it has written into the exchange."""
    try:
        exchange.store().read("probes/from-client")
        name = f"probes/{uuid.uuid4().hex}"
        exchange.put_piece(name, b"probe")
    except RocwheelError as e:
        return [Unread(exchange.place, str(e))]
    return find_unread(inputs) or name
