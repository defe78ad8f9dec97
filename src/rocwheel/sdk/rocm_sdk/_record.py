"""Reads RECORD, the list of a distribution's files, and keeps the RECORD file of rocm-sdk-devel correct.

https://packaging.python.org/specifications/recording-installed-packages/.

RECORD never lists a missing file. During the expansion, two lines list the package's folder and the tree's folder. pip
and uv remove a listed folder with all its contents, so an uninstall also removes the files that a killed process left
behind. The line for the tree's folder remains. Without it, pip would leave broken links behind.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import stat
from contextlib import suppress
from errno import ENOENT
from pathlib import Path

from ._devel_place import STATE, DevelError
from ._distributions import find_distribution
from ._files import NotAFileError, is_folder, is_there, list_below, read_regular
from ._installing import overwriting_hint
from ._packages import describe_package, metadata_folders
from ._platform import this_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ._devel_place import DevelPlace

    Row = tuple[str, Path, str, str]

RECORD_ERRORS = (UnicodeDecodeError, csv.Error, OSError)
"""The errors that reading RECORD can raise."""

BLOCK = 1 << 20


def read_inside(dist: str) -> list[Row]:
    """Return the name, path, hash, and size of each file that a distribution has in site-packages.

    Raises `FileNotFoundError` if there is no RECORD, or one of the other `RECORD_ERRORS` if RECORD can't be read.
    """
    return [row for row in _read_rows(dist) if not _is_outside(row[0]) and not row[0].endswith(".pyc")]


def read_outside(dist: str) -> list[Row]:
    """Return a distribution's files outside site-packages, such as scripts.

    After an installation with ``--target``, the paths of these files are wrong. Raises the same errors as
    `read_inside`.
    """
    return [row for row in _read_rows(dist) if _is_outside(row[0])]


def _is_outside(name: str) -> bool:
    return name.startswith(("../", "/"))


def _read_rows(dist: str) -> list[Row]:
    site = Path(str(find_distribution(dist).locate_file("")))
    folder = next(iter(metadata_folders(site, dist)), None)
    if folder is None:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), "RECORD")
    cells = [(*row, "", "")[:3] for row in _rows(folder / "RECORD")]
    # The names in RECORD are UTF-8, even if Python decodes file names as ASCII.
    return [(name, _locate(site, os.fsdecode(name.encode())), digest, size) for name, digest, size in cells]


def _locate(site: Path, name: str) -> Path:
    """Return the path of a listed file. Installers resolve ``..`` in the text of the path, without following links."""
    path = site / name
    return this_platform().extended(Path(os.path.normpath(path)) if _is_outside(name) else path)


def list_folders(place: DevelPlace) -> None:
    """List the existing folders of the package and the tree in RECORD, and remove the lines of the tree's old files."""
    record = _find_record(place)
    if record is None:
        return
    rows = _read_own(record)
    listed = {row[0] for row in rows}
    folders = [[name, "", ""] for name in (place.package.name, place.root.name)]
    new = [row for row in folders if row[0] not in listed]
    # Other hard links to the same file must stay unchanged.
    is_alone = record.lstat().st_nlink == 1 and not record.is_symlink()
    if new and is_alone and _append(record, new):
        new = []
    kept = [row for row in rows if not row[0].startswith(f"{place.root.name}/")]
    if new or len(kept) < len(rows):
        _replace(place, record, [*_rows_besides(place, kept), *folders])


def list_tree(place: DevelPlace, archive: Path, others: Collection[Path]) -> None:
    """List the files of the complete tree in RECORD instead of the earlier lines.

    The archive is removed after this step.

    Only files that belong to the tree have hashes, because links point to other packages and `STATE` changes.
    ``others`` are in the tree but don't belong to it: links to device packages and notes, which exist if a failure
    delayed this step.
    """
    record = _find_record(place)
    if record is None:
        return
    gone = archive.relative_to(place.site).as_posix()
    rows = [row for row in _rows_besides(place, _read_own(record)) if row[0] != gone]
    found = (path for path in list_below(place.root) if path.is_symlink() or not path.is_dir())
    rows += [[name, "", ""] for name in (place.package.name, place.root.name)]
    _replace(place, record, [*rows, *(_row_of(place, path) for path in found if path not in others)])


def unlist(place: DevelPlace, *folders: Path) -> None:
    """Remove the line for the package's folder, because its files have their own lines.

    If there is no tree, remove both lines.
    """
    record = _find_record(place)
    rows = _read_own(record) if record else []
    kept = [row for row in rows if row[0] not in {folder.name for folder in folders}]
    if record and len(kept) < len(rows):
        _replace(place, record, kept)


def listed_hash(place: DevelPlace, archive: Path) -> str:
    """Return the archive's hash in RECORD, or an empty string."""
    record = _find_record(place)
    name = archive.relative_to(place.site).as_posix()
    rows = _read_own(record) if record else []
    return next((row[1] for row in rows if row[0] == name and len(row) > 1), "")


def _find_record(place: DevelPlace) -> Path | None:
    """Return the path of RECORD, or `None` if the wheel was only unpacked and has no RECORD to update.

    Another user who may write to site-packages may have created a folder with that name and a link to another file.
    """
    package = describe_package("devel")
    folders = metadata_folders(place.site, package.dist) if package else []
    own = (one for one in folders if is_folder(one) and this_platform().may_trust(one, place.package))
    return next((folder / "RECORD" for folder in own if is_there(folder / "RECORD")), None)


def _read_own(record: Path) -> list[list[str]]:
    try:
        return _rows(record)
    except NotAFileError as e:
        msg = f"{e}. Remove it, and reinstall: {overwriting_hint('devel')}"
        raise DevelError(msg) from e
    except (UnicodeDecodeError, csv.Error) as e:
        msg = f"{record}: is not a CSV list of files ({e}). Reinstall: {overwriting_hint('devel')}"
        raise DevelError(msg) from e


def _rows(record: Path) -> list[list[str]]:
    # `str.splitlines` would also split at line separators in names.
    return [row for row in csv.reader(io.StringIO(read_regular(record), newline="")) if row]


def _rows_besides(place: DevelPlace, rows: Iterable[list[str]]) -> list[list[str]]:
    """Return all rows except those for the tree and for the package's folder."""
    return [row for row in rows if row[0].partition("/")[0] != place.root.name and row[0] != place.package.name]


def _row_of(place: DevelPlace, path: Path) -> list[str]:
    is_alone = path.is_symlink() or path == place.root / STATE
    return [path.relative_to(place.site).as_posix(), *(("", "") if is_alone else describe_file(path))]


def describe_file(path: Path) -> tuple[str, str]:
    """Return the hash and the size of a file in the format of RECORD. Raises `OSError`."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            size += len(block)
    return f"sha256={base64.urlsafe_b64encode(digest.digest()).decode().rstrip('=')}", str(size)


def _append(record: Path, rows: list[list[str]]) -> bool:
    """Add rows in a single system call, which a signal can't interrupt. Return whether all rows were written.

    If not all rows can be written to the disk, RECORD stays unchanged. Some file systems report that failure only when
    the file is synced. A new file that replaces RECORD would need a name that RECORD lists.
    """
    data = _text(rows).encode()
    with record.open("r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        data = data if file.read(1) in (b"\n", b"") else b"\n" + data
        try:
            written = file.write(data)
            os.fsync(file.fileno())
        except OSError:
            file.truncate(size)
            raise
        if written < len(data):
            file.truncate(size)
        return written == len(data)


def _replace(place: DevelPlace, record: Path, rows: list[list[str]]) -> None:
    """Rewrite RECORD, and remove the marker `DevelPlace.scratch` in the same step."""
    new = place.scratch.with_suffix(".new")
    try:
        new.unlink(missing_ok=True)
        with new.open("x", encoding="utf-8", newline="") as file:
            this_platform().set_file_mode(file, stat.S_IMODE(record.stat().st_mode))
            file.write(_text(rows))
        is_due = is_there(place.scratch)
        if is_due:
            this_platform().retry(new.replace, place.scratch)
        this_platform().retry((place.scratch if is_due else new).replace, record)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise
    if not is_there(record.parent / "METADATA"):
        # The package is being uninstalled. A leftover RECORD would break later installations.
        with suppress(OSError):
            record.unlink()
            record.parent.rmdir()
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(record))


def _text(rows: list[list[str]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
