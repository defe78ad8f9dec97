"""Splits a tree of files into a folder for the host and a folder for each target."""

from __future__ import annotations

import os
import posixpath
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.kind import is_ar_archive, is_binary, is_pe, unread_archive
from rocwheel.binary.kpack.markers import find_split_library
from rocwheel.binary.kpack.write import FileSink
from rocwheel.binary.pe.rewrite import SignedFileError
from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.patch import FilePatch, write_data, write_patch
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileRange, unchanged
from rocwheel.core.workers import attempt_all, map_collecting, open_workers, raise_all
from rocwheel.core.writing import new_folder
from rocwheel.device.edit_file import is_signed_image
from rocwheel.device.edit_tree import copy_file, copy_status, list_tree, require_regular
from rocwheel.device.split.host_file import plan_host_file
from rocwheel.device.split.joining import MendedFiles, checked_files
from rocwheel.device.split.splitting import (
    LackingCode,
    NamedFile,
    SplitChoice,
    StayingCode,
    Workers,
    plan_split,
    write_archives,
)
from rocwheel.device.split.units import is_archive_folder
from rocwheel.targets.kernel_files import classify_path
from rocwheel.wheels.binaries import inner_wheel_warnings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rocwheel.core.errors import RocwheelError
    from rocwheel.device.split.splitting import DeviceFile, HostFile, SplitPlan
    from rocwheel.device.split.units import PlannedArchive


class TreeListing(msgspec.Struct, frozen=True, kw_only=True):
    """A tree, keyed by path below its root, with ``/``; for a single file, the root is its folder."""

    root: Path
    folders: tuple[str, ...]
    links: tuple[str, ...]
    files: tuple[NamedFile, ...]
    aliases: dict[str, str]
    """Other names (hard links) of files, each with the file's name in `files`."""


def list_source(source: Path) -> TreeListing:
    """List the tree or file ``source``.

    Raises `InputError`, or `ProblemsError` for several problems, for folders that can't be listed, and for pipes and
    devices.
    """
    if not source.is_dir():
        require_regular(source)
        file = NamedFile(source.name, FileRange.whole(source), str(source))
        return TreeListing(root=source.parent, folders=(), links=(), files=(file,), aliases={})
    paths = list_tree(source)
    links = [path for path in paths if path.is_symlink()]
    folders = [path for path in paths if path.is_dir() and not path.is_symlink()]
    regular = sorted({*paths} - {*links} - {*folders})
    map_collecting(str(source), require_regular, regular)
    # Other names of files. If a name is for another target than the first name, it counts as a separate file.
    first: dict[tuple[int, int, str], str] = {}
    aliases = {}
    for path in regular:
        status = path.stat()
        if status.st_nlink > 1:
            name = _below(source, path)
            kernels = classify_path(name)
            key = (status.st_dev, status.st_ino, kernels.target if kernels else "")
            if first.setdefault(key, name) != name:
                aliases[name] = first[key]
    files = [path for path in regular if _below(source, path) not in aliases]
    return TreeListing(
        root=source,
        folders=tuple(_below(source, path) for path in folders),
        links=tuple(_below(source, path) for path in links),
        files=tuple(NamedFile(_below(source, path), FileRange.whole(path), str(path)) for path in files),
        aliases=aliases,
    )


def _below(root: Path, path: Path) -> str:
    return os.path.relpath(path, root)


_EXPECTED = "another folder for archives"


def find_place(root: Path, folder: str) -> str:
    """Return the path of ``folder`` below ``root``, without links; the folder need not exist.

    A target's folder can't be copied over the host's folder if the host has a link where the target has a folder.
    Raises `InputError` for a file in the path. Also raises it for a broken link, and for a link to a file, to a
    location outside the tree, or to a name that markers can't contain.
    """
    parts = folder.split("/")
    for number in range(1, len(parts) + 1):
        path = "/".join(parts[:number])
        step = root / path
        if step.is_symlink():
            text = str(step.readlink())
            if fault := _fault_of_link(root, step):
                found = f"is a symlink to {quoted(text)}, {fault}, but the split puts archives below it"
                raise InputError(path, found, expected=_EXPECTED, remedy=_remedy(root, text, "/".join(parts[number:])))
        elif step.exists() and not step.is_dir():
            raise InputError(path, "is a file, but the split puts archives below it", expected=_EXPECTED)
    place = os.path.relpath(os.path.realpath(root / folder), os.path.realpath(root))
    if place != folder and not is_archive_folder(place):
        expected = f"{_EXPECTED}, whose names contain only A-Z, a-z, 0-9, and ._+-"
        raise InputError(
            folder,
            f"is a link to {quoted(place)}, but the split puts archives below it",
            expected=expected,
        )
    return "" if place == "." else place


def require_free(plan: SplitPlan, taken: Iterable[str]) -> None:
    """Raise `InputError`, or `ProblemsError` for several problems, for archives whose path is in ``taken``."""
    names = {path.lower() for path in taken}
    places = dict.fromkeys(archive.path for archive in plan.iter_archives())
    remedy = "Join the tree first, or specify another folder with --archives."
    found, expected = "is already in the tree, but the split would create it", "a tree without this file"
    there = [path for path in places if path.lower() in names]
    raise_all("archives", [InputError(path, found, expected=expected, remedy=remedy) for path in there])


def _fault_of_link(root: Path, link: Path) -> str:
    """Return why archives can't be below a link, or an empty string if they can be below its target."""
    top, aim = os.path.realpath(root), os.path.realpath(link)
    if os.path.commonpath([top, aim]) != top:
        return "outside the tree"
    if not link.exists():
        return "which doesn't exist"
    return "" if link.is_dir() else "which is a file"


def _remedy(root: Path, text: str, rest: str) -> str:
    """Return the folder that an absolute link probably refers to: in a system image, "/" is the image's root."""
    meant = posixpath.normpath(text).lstrip("/")
    folder = posixpath.join(meant, rest) if rest else meant
    is_there = text.startswith("/") and is_archive_folder(folder) and (root / meant).is_dir()
    return f"Specify --archives {folder}." if is_there else ""


HOST_FOLDER = "host"
"""The folder for all files that aren't specific to one target."""


def place_files(listing: TreeListing, plan: SplitPlan) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the folder for each path in a tree, and the paths for targets that aren't kept.

    A link goes into the folder that its name indicates, or otherwise into its target's folder. A file's other names go
    into the same folder as its first name.
    """
    folder_of = {file.path: HOST_FOLDER for file in plan.host} | {file.path: file.target for file in plan.device}
    folder_of |= {alias: folder_of[first] for alias, first in listing.aliases.items() if first in folder_of}
    left_out = [*plan.left_out, *(alias for alias in listing.aliases if alias not in folder_of)]
    for link in listing.links:
        folder = _folder_of_link(listing, link, folder_of, set(plan.targets))
        if folder is None:
            left_out.append(link)
        else:
            folder_of[link] = folder
    return folder_of, tuple(sorted(left_out))


def _folder_of_link(listing: TreeListing, link: str, folder_of: Mapping[str, str], targets: set[str]) -> str | None:
    root = os.path.realpath(listing.root)
    aim = os.path.relpath(os.path.realpath(listing.root / link), root)
    if (folder := folder_of.get(aim)) is not None:
        return folder
    kernels = classify_path(link)
    if kernels is None:
        return HOST_FOLDER
    return kernels.target if kernels.target in targets else None


class SplitLibraryReport(msgspec.Struct, frozen=True, kw_only=True):
    """A library whose code goes into archives; sizes are in bytes, and ``code`` is the size of its code objects."""

    path: str
    units: int
    code: int
    size_before: int
    size_after: int
    archives: tuple[str, ...]
    zeros: int = 0
    """The number of zero bytes that replace the code, if the code's space can't be removed from the file.

    The number is 0 if there is less than a mebibyte of zeros.
    """


class TargetShare(msgspec.Struct, frozen=True, kw_only=True):
    """A target's folder: the numbers of its archives and other files, and their total size in bytes.

    In a dry run, no archives are written, so the size is unknown.
    """

    target: str
    archives: int
    files: int
    size: int | None


class SplitReport(msgspec.Struct, frozen=True, kw_only=True):
    """The results for a tree: the number of files in its host folder, the split libraries, and the targets."""

    host_files: int
    libraries: tuple[SplitLibraryReport, ...]
    targets: tuple[TargetShare, ...]
    staying: tuple[StayingCode, ...]
    left_out: tuple[str, ...]
    """Files for targets that aren't kept."""
    lacking: tuple[LackingCode, ...] = ()
    """Libraries that have no code for one of the targets to keep."""
    warnings: tuple[str, ...] = ()
    """Faults in libraries that were split earlier."""
    mended: tuple[str, ...] = ()
    """Libraries that were split earlier and are now corrected."""


def make_report(plan: SplitPlan, sizes: Mapping[str, int] | None) -> SplitReport:
    """Return the report for ``plan``. If the archives were written, ``sizes`` contains their sizes, keyed by path."""
    return SplitReport(
        host_files=len(plan.host),
        libraries=tuple(
            SplitLibraryReport(
                path=file.path,
                units=len(library.units),
                code=library.code_size,
                size_before=file.content.size,
                size_after=file.size,
                archives=tuple(archive.path for archive in library.archives),
                zeros=file.zeros,
            )
            for file, library in plan.libraries
        ),
        targets=tuple(_share(plan, target, sizes) for target in plan.targets),
        staying=tuple(StayingCode(file.path, file.remark) for file in plan.host if file.remark),
        left_out=plan.left_out,
        lacking=plan.lacking,
    )


def _share(plan: SplitPlan, target: str, sizes: Mapping[str, int] | None) -> TargetShare:
    archives = [archive for archive in plan.iter_archives() if archive.target == target]
    files = [file for file in plan.device if file.target == target]
    size = None
    if sizes is not None or not archives:
        size = sum((sizes or {})[archive.path] for archive in archives) + sum(file.content.size for file in files)
    return TargetShare(target=target, archives=len(archives), files=len(files), size=size)


class SplitOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for splitting a tree: which code to keep, how to store it, and the number of workers."""

    choice: SplitChoice
    jobs: int = 1
    dry_run: bool = False
    """Whether this is a dry run, which writes nothing. If so, archives have no size in the report."""
    mend: bool = False
    """Whether to split libraries again if an earlier split left units missing or misplaced in archives."""
    progress: Progress = SILENT


def split_tree(source: Path, output: Path, order: SplitOrder) -> SplitReport:
    """Split the tree or file ``source`` into folders below ``output``: ``host``, and a folder for each target.

    ``host`` is the tree without device code. A target's folder adds the code for that target. ``output`` must not exist
    or be in ``source``. The output appears only when it is complete. Raises the same errors as `plan_split`,
    `find_place`, and `require_free`, and, with ``mend``, as `checked_files`. Raises `InputError` for unreadable paths,
    and for a single file that isn't a binary, or that is a Windows file that can't be split. Raises `ProblemsError` for
    several problems, and `WorkError` if writing fails. Raises `InputError` if there is no device code, unless an
    earlier split moved the code.
    """
    listing = list_source(source)
    with checked_files(listing.files, str(source), mend=order.mend) as checked:
        listing = msgspec.structs.replace(listing, files=checked.files)
        plan = _plan(source, listing, order.choice)
        _require_code(source, plan)
        if order.dry_run:
            return _report(listing, plan, None, checked)
        with new_folder(output, source) as made:
            sizes = _Splitting(listing, plan, made, order).run()
        return _report(listing, plan, sizes, checked)


def _plan(source: Path, listing: TreeListing, choice: SplitChoice) -> SplitPlan:
    if not source.is_dir():
        plan = plan_split(listing.files, choice, subject=str(source))
        _require_split(source, plan)
        return plan
    try:
        place = find_place(source, choice.archives)
    except InputError:
        plan = plan_split(listing.files, choice, subject=str(source))
        if any(plan.iter_archives()):
            raise
        return plan  # without archives, no path can conflict
    plan = plan_split(listing.files, msgspec.structs.replace(choice, archives=place), subject=str(source))
    require_free(plan, (*listing.folders, *place_files(listing, plan)[0]))
    return plan


def _require_split(source: Path, plan: SplitPlan) -> None:
    """Raise `InputError` for a single input that isn't a binary, or is a DLL or program that keeps its code.

    `_require_code` checks whether a library or program without device code is already split.
    """
    for file in plan.host:
        if file.library is not None:
            continue
        with file.content.view() as data:
            # Debian packages are also ``ar`` archives, and static libraries are never split.
            if not file.remark and (not is_binary(data) or is_ar_archive(data)):
                found = unread_archive(data) or "no device code to split off"
                raise InputError(source, found, expected="a fat binary, a wheel, or a folder")
            if not file.remark:
                continue
            if is_signed_image(data, name=str(source)):
                raise SignedFileError(str(source))
            if is_pe(data):
                raise InputError(source, f"can't be split: {file.remark}")


def _require_code(source: Path, plan: SplitPlan) -> None:
    """Raise `InputError` if no file has device code, and no library was split before."""
    if plan.targets or plan.left_out or any(file.remark or _is_split(file) for file in plan.host):
        return
    found, remedy = "has no device code to split off", "Check the path. To copy files without device code, use cp."
    if wheel := next((file.path for file in plan.host if file.path.endswith(".whl") and source.is_dir()), ""):
        remedy = f"To split the wheels in this folder, pass them instead of the folder: {source / wheel}"
    raise InputError(source, found, expected="a fat binary, a wheel, or a folder with device code", remedy=remedy)


def _is_split(file: HostFile) -> bool:
    with file.content.view() as data:
        return find_split_library(data, name=file.content.path) is not None


def _report(listing: TreeListing, plan: SplitPlan, sizes: dict[str, int] | None, checked: MendedFiles) -> SplitReport:
    report = make_report(msgspec.structs.replace(plan, left_out=place_files(listing, plan)[1]), sizes)
    wheels = inner_wheel_warnings(listing.root / file.path for file in plan.host)
    return msgspec.structs.replace(report, warnings=(*checked.warnings, *wheels), mended=checked.mended)


class _Splitting:
    """Writes one tree below ``made``: a folder for the host, and a folder for each target."""

    def __init__(self, listing: TreeListing, plan: SplitPlan, made: Path, order: SplitOrder) -> None:
        self._listing, self._plan, self._order = listing, plan, order
        self._made = made
        self._folder_of, left_out = place_files(listing, plan)
        self._left_out = frozenset(left_out)
        self._sizes: dict[str, int] = {}

    def run(self) -> dict[str, int]:
        """Write everything and return the sizes of the archives."""
        problems: list[RocwheelError] = []
        # Create the host's folders, and the folders of targets that have content.
        (self._made / HOST_FOLDER).mkdir(parents=True)
        for folder in self._listing.folders:
            (self._made / HOST_FOLDER / folder).mkdir()
        for path, folder in self._folder_of.items():
            (self._made / folder / path).parent.mkdir(parents=True, exist_ok=True)
        libraries = [file for file, _ in self._plan.libraries]
        progress = self._order.progress
        progress.begin(f"splitting {self._listing.root.resolve().name}", self._plan.code_size)
        try:
            with open_workers(self._order.jobs) as executor:
                workers = Workers(executor, progress)
                copies = [executor.submit(self._write_host, file) for file in self._plan.host]
                copies += [executor.submit(self._write_device, file) for file in self._plan.device]
                choice = self._order.choice
                attempt_all(lambda file: write_archives(file, choice, self._open_archive, workers), libraries, problems)
                attempt_all(lambda copy: copy.result(), copies, problems)
        finally:
            progress.end()
        raise_all(str(self._listing.root), problems)
        self._make_names()
        # Folders get their permissions and times from the old tree, deepest first.
        for folder in sorted(self._listing.folders, reverse=True):
            for name in {HOST_FOLDER, *self._folder_of.values()}:
                if (self._made / name / folder).is_dir():
                    copy_status(self._listing.root / folder, self._made / name / folder)
        return self._sizes

    def _path_of(self, path: str) -> Path:
        return self._made / self._folder_of[path] / path

    def _write_host(self, file: HostFile) -> None:
        if file.patch is None:
            copy_file(self._listing.root / file.path, self._path_of(file.path))
        else:
            self._write_patched(file, file.path, file.patch)

    def _write_patched(self, file: HostFile, path: str, patch: FilePatch) -> None:
        """Write ``file`` under the name ``path``, changed by ``patch``."""
        old, made = self._listing.root / path, self._path_of(path)
        with unchanged(old), file.content.view() as data, made.open("xb") as new:
            write_patch(new, data, patch)
        copy_status(old, made)

    def _write_device(self, file: DeviceFile) -> None:
        """Write a target's file. The remaining content of a reduced archive isn't at the archive's path."""
        old, made = self._listing.root / file.path, self._path_of(file.path)
        if file.content.path == str(old):
            copy_file(old, made)
            return
        with file.content.view() as data, made.open("xb") as new:
            write_data(new, data)
        copy_status(old, made)

    @contextmanager
    def _open_archive(self, archive: PlannedArchive) -> Iterator[FileSink]:
        path = self._made / archive.target / archive.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            yield FileSink(file)
            self._sizes[archive.path] = file.seek(0, 2)
        path.chmod(0o644)

    def _make_names(self) -> None:
        """Create symbolic links and hard links. A library whose markers differ under another name needs a copy."""
        for link in self._listing.links:
            if link in self._folder_of:
                self._path_of(link).symlink_to((self._listing.root / link).readlink())
        hosts = {file.path: file for file in self._plan.host}
        for alias, first in self._listing.aliases.items():
            host = hosts.get(first)
            if host is None or host.library is None or host.library.markers(alias) == host.library.markers():
                if first not in self._left_out:
                    self._path_of(alias).hardlink_to(self._path_of(first))
                continue
            with host.content.view() as data:
                patch = plan_host_file(data, host.library.markers(alias), host.library.links(), name=host.path)
            self._write_patched(host, alias, patch)
