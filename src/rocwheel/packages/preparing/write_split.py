"""The files of a split: host files without device code, and archives with it, in a folder that goes with the build."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.patch import write_patch
from rocwheel.core.reading import FileRange
from rocwheel.core.workers import attempt_all, raise_all
from rocwheel.core.writing import atomic_file
from rocwheel.device.splitting.write_archives import write_archives

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.writing import AtomicFile
    from rocwheel.device.splitting.files import HostFile, SplitChoice, SplitPlan
    from rocwheel.device.splitting.planning.library import PlannedArchive
    from rocwheel.device.splitting.write_archives import Workers

__all__ = ["SplitFiles", "write_split"]


class SplitFiles(msgspec.Struct, frozen=True):
    """What was written, by the paths that the plan has for it."""

    hosts: dict[str, FileRange]
    archives: dict[str, FileRange]


def write_split(plan: SplitPlan, choice: SplitChoice, folder: Path, workers: Workers, *, subject: str) -> SplitFiles:
    """Write the host files and archives of ``plan`` below ``folder``.

    Raises, for all libraries together and led by ``subject`` if they are several, what `write_archives` raises.
    """
    problems: list[RocwheelError] = []
    libraries = [file for file in plan.host if file.library is not None]
    workers.progress.begin("splitting device code", sum(file.library.code_size for file in libraries if file.library))
    try:
        made = attempt_all(partial(_write, choice=choice, folder=folder, workers=workers), libraries, problems)
    finally:
        workers.progress.end()
    raise_all(subject, problems)
    archives = {archive.path: FileRange.whole(folder / archive.path) for archive in plan.iter_archives()}
    return SplitFiles({file.path: host for file, host in zip(libraries, made, strict=True)}, archives)


def _write(file: HostFile, *, choice: SplitChoice, folder: Path, workers: Workers) -> FileRange:
    assert file.library is not None
    assert file.patch is not None
    path = folder / "host" / file.path
    path.parent.mkdir(parents=True, exist_ok=True)

    def open_archive(archive: PlannedArchive) -> AbstractContextManager[AtomicFile]:
        return atomic_file(folder / archive.path)

    with file.content.view() as data, path.open("xb") as host:
        write_patch(host, data, file.patch)
        write_archives(data, file.library, choice, open_archive, workers)
    return FileRange.whole(path)
