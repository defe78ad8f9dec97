"""Splits the folder of an unpacked wheel into a folder for the host wheel and a folder for each device wheel."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.names import is_utf8
from rocwheel.core.reading import FileRange, read_small
from rocwheel.core.scratch import scratch_folder, temporary_folder
from rocwheel.core.workers import map_collecting, open_workers
from rocwheel.core.writing import new_folder, safe_mode
from rocwheel.device.split.split_wheel import split_wheel
from rocwheel.device.split.wheel_metadata import unpacked_name
from rocwheel.wheels.content import FileContent
from rocwheel.wheels.writing import write_wheels
from rocwheel.wheels.zip_directory import read_directory
from rocwheel.wheels.zip_reader import iter_member

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.device.split.split_wheel import WheelSplit
    from rocwheel.device.split.wheel_metadata import WheelSplitOrder
    from rocwheel.wheels.sdist import SourceDate

_TEXTS = ("METADATA", "WHEEL")
"""The files in ``.dist-info`` that identify the wheel."""

_MOST = 64 << 20
"""The size limit of such a file in bytes, the same as in a wheel."""

_WHEELS = ".wheels"
"""The folder for the wheels while their folders are created."""


def is_unpacked_wheel(folder: Path) -> bool:
    """Return whether a folder contains one unpacked wheel, which may be incomplete, with RECORD or both other files.

    If it were split as a tree, its RECORD would be invalid.
    """
    infos = list(folder.glob("*.dist-info")) if folder.is_dir() else []
    return len(infos) == 1 and (
        os.path.lexists(infos[0] / "RECORD") or all((infos[0] / name).is_file() for name in _TEXTS)
    )


def split_unpacked(folder: Path, dest_dir: Path, order: WheelSplitOrder, source_date: SourceDate) -> WheelSplit:
    """Write the folders for the host wheel and the device wheels of the unpacked wheel ``folder`` to ``dest_dir``.

    The folder names are wheel names without tags, such as ``torch-2.9``, and each folder has its own RECORD.
    ``dest_dir`` must be new or empty, and appears only when it is complete. Raises the same errors as `split_wheel`.
    Also raises `InputError` for files that wheels can't contain, such as symlinks, and `WorkError` if writing fails.
    """
    with _workplace(folder, dest_dir, dry_run=order.dry_run) as made:
        wheels = made / _WHEELS
        packed = _pack(folder, wheels / "fat", source_date)
        report = split_wheel(packed, wheels / "parts", order, source_date, shown=str(folder))
        if not order.dry_run:
            for path in (report.host, *(device.path for device in report.devices)):
                _unpack(Path(path), made / _folder_name(path))
        shutil.rmtree(wheels)
    return msgspec.structs.replace(
        report,
        host=str(dest_dir / _folder_name(report.host)),
        devices=tuple(
            msgspec.structs.replace(device, path=str(dest_dir / _folder_name(device.path))) for device in report.devices
        ),
    )


@contextmanager
def _workplace(folder: Path, dest_dir: Path, *, dry_run: bool) -> Iterator[Path]:
    with ExitStack() as stack:
        if dry_run:
            yield stack.enter_context(scratch_folder(Path(temporary_folder(), folder.resolve().name)))
        else:
            yield stack.enter_context(new_folder(dest_dir, folder))


def _pack(folder: Path, dest_dir: Path, source_date: SourceDate) -> Path:
    """Write the files in a folder as an uncompressed wheel, named according to its metadata."""
    paths = sorted(path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    map_collecting(str(folder), partial(_require_plain, folder), paths)
    [info] = folder.glob("*.dist-info")
    expected = "a text file from an unpacked wheel"
    map_collecting(str(info), partial(_require_text, info), _TEXTS)
    texts = {name: read_small(info / name, _MOST, expected=expected) for name in _TEXTS}
    wheel = dest_dir / unpacked_name(info, texts["WHEEL"])
    anew = {info / name for name in (*texts, "RECORD")}
    with open_workers(1) as executor, write_wheels(executor, source_date.zip_time, level=0) as packer:
        made = packer.open(wheel, dist_info=info.name)
        for path in paths:
            if path not in anew:
                content = FileContent(FileRange.whole(path))
                made.add(path.relative_to(folder).as_posix(), safe_mode(path.stat().st_mode), content)
        made.close(texts)
    return wheel


def _require_text(info: Path, name: str) -> None:
    if not os.path.lexists(info / name):
        expected, remedy = (
            "the folder of an unpacked wheel",
            "Unpack the wheel again. To split a tree, remove its RECORD.",
        )
        raise InputError(info, f"has no {name}", expected=expected, remedy=remedy)


def _require_plain(folder: Path, path: Path) -> None:
    if path.is_symlink() or not path.is_file():
        found = "is a link" if path.is_symlink() else "isn't a regular file"
        raise InputError(path, found, expected="an unpacked wheel, which contains only regular files")
    name = str(path.relative_to(folder))
    if not is_utf8(name) or "\\" in name:
        found, remedy = "has a name that no wheel can contain", "Rename the file, and change its row in RECORD."
        raise InputError(path, found, expected="UTF-8 without backslashes", remedy=remedy)


def _folder_name(wheel: str) -> str:
    return "-".join(Path(wheel).name.split("-")[:2])


def _unpack(wheel: Path, folder: Path) -> None:
    for member in read_directory(wheel):
        path = folder / member.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            for piece in iter_member(member):
                file.write(piece)
        path.chmod(safe_mode(member.mode))
