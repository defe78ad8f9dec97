"""The inputs that workers read by their paths: whether they are still what they were when the plan was made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.core.errors import WorkError, read_error
from rocwheel.packages.clustered.staging import sources

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from rocwheel.core.reading import FileStamp
    from rocwheel.packages.clustered.staging import Staging
    from rocwheel.packages.plan import PlannedWheel

__all__ = ["require_same", "shared_inputs"]


def shared_inputs(wheels: Iterable[PlannedWheel], staging: Staging) -> dict[str, FileStamp]:
    """Return the files of wheels that workers read by their paths, with their stamps."""
    members = (member for wheel in wheels for member in (*wheel.members, *wheel.licenses))
    found = (source for member in members for source in sources(member) if not staging.is_staged(source))
    return {source.path: source.stamp for source in found if source.stamp is not None}


def require_same(wheel: PlannedWheel, staging: Staging) -> None:
    """Raise `ChangedFileError` for an input of a wheel that has changed, `WorkError` for one that is gone.

    Workers compare size and time alone, which is what all machines see alike; this machine listed the files, and knows
    them by all of their stamps.
    """
    for path, stamp in sorted(shared_inputs([wheel], staging).items()):
        stamp.require(_status(path), path)


def _status(path: str) -> os.stat_result:
    try:
        return Path(path).stat()
    except OSError as e:
        raise read_error(path, e, kind=WorkError) from e
