"""Splitting a tree of files, or one file: a folder for the host, and one for each target to be laid over it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.kind import is_ar_archive, is_binary, is_pe, is_thin_archive
from rocwheel.binary.kpack.write import FileSink
from rocwheel.binary.pe.rewrite import SignedFileError
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import attempt_all, open_workers, raise_all
from rocwheel.core.writing import new_folder
from rocwheel.device.reading.images import is_signed_image
from rocwheel.device.splitting.files import SplitChoice
from rocwheel.device.splitting.host.host_file import plan_host_file
from rocwheel.device.splitting.joining.checked_files import CheckedFiles, checked_files
from rocwheel.device.splitting.plan import plan_split
from rocwheel.device.splitting.trees.archives_place import find_place, require_free
from rocwheel.device.splitting.trees.listing import Listing, list_source
from rocwheel.device.splitting.trees.placing import Placer, place_files
from rocwheel.device.splitting.trees.report import SplitReport, make_report
from rocwheel.device.splitting.write_archives import Workers, write_archives
from rocwheel.wheels.binaries import inner_wheel_warnings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.reading import Data
    from rocwheel.device.splitting.files import HostFile, SplitPlan
    from rocwheel.device.splitting.planning.library import PlannedArchive

__all__ = ["SplitOrder", "split_tree"]


class SplitOrder(msgspec.Struct, frozen=True, kw_only=True):
    """How a tree is split: what is kept and how it is stored, and with how many workers."""

    choice: SplitChoice
    jobs: int = 1
    dry_run: bool = False
    """Whether nothing is written; archives have no size in the report then."""
    mend: bool = False
    """Whether libraries that were split before, with units missing or misplaced in archives, are split again."""
    progress: Progress = SILENT


def split_tree(source: Path, output: Path, order: SplitOrder) -> SplitReport:
    """Split the tree or file ``source`` into folders below ``output``: ``host``, and one for each target.

    ``host`` is the tree without device code; laid over it, the folder of a target brings its code. ``output`` must
    neither exist nor be in ``source``; it appears when it is whole.
    Raises `InputError` as `plan_split`, `find_place` and `require_free` do, for what can't be read, and for a file by
    itself that is no binary or is one of Windows that can't be split; `ProblemsError` for several problems, and
    `WorkError` when writing fails; with ``mend``, also as `checked_files` does.
    """
    listing = list_source(source)
    with checked_files(listing.files, str(source), mend=order.mend) as checked:
        listing = msgspec.structs.replace(listing, files=checked.files)
        plan = _plan(source, listing, order.choice)
        if order.dry_run:
            return _report(listing, plan, None, checked)
        with new_folder(output, source) as made:
            sizes = _Splitting(listing, plan, made, order).run()
        return _report(listing, plan, sizes, checked)


def _plan(source: Path, listing: Listing, choice: SplitChoice) -> SplitPlan:
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
        return plan  # without archives, nothing is in their way
    plan = plan_split(listing.files, msgspec.structs.replace(choice, archives=place), subject=str(source))
    require_free(plan, (*listing.folders, *place_files(listing, plan).folder_of))
    return plan


def _require_split(source: Path, plan: SplitPlan) -> None:
    """Raise `InputError` for what was named by itself: a DLL or program that keeps its code, and what is no binary.

    A library or program without device code is fine: it may be split already.
    """
    for file in plan.host:
        if file.library is not None:
            continue
        with file.content.view() as data:
            if not file.remark:
                _require_binary(source, data)
                continue
            if is_signed_image(data, name=str(source)):
                raise SignedFileError(str(source))
            if is_pe(data):
                raise InputError(source, f"can't be split: {file.remark}")


def _require_binary(source: Path, data: Data) -> None:
    # Debian packages are archives, too, and nothing is ever split off a static library.
    if not is_binary(data) or is_ar_archive(data):
        found = "a thin archive" if is_thin_archive(data) else "no device code to split off"
        raise InputError(source, found, expected="a fat binary, a wheel or a folder")


def _report(listing: Listing, plan: SplitPlan, sizes: dict[str, int] | None, checked: CheckedFiles) -> SplitReport:
    left_out = place_files(listing, plan).left_out
    report = make_report(msgspec.structs.replace(plan, left_out=left_out), sizes)
    wheels = inner_wheel_warnings(listing.root / file.path for file in plan.host)
    return msgspec.structs.replace(report, warnings=(*checked.warnings, *wheels), mended=checked.mended)


class _Splitting:
    """The writing of one tree."""

    def __init__(self, listing: Listing, plan: SplitPlan, made: Path, order: SplitOrder) -> None:
        self._listing, self._plan, self._order = listing, plan, order
        self._made = made
        self._placer = Placer(listing, place_files(listing, plan), made)
        self._sizes: dict[str, int] = {}

    def run(self) -> dict[str, int]:
        """Write everything; return the sizes of the archives."""
        problems: list[RocwheelError] = []
        self._placer.make_folders()
        libraries = [file for file in self._plan.host if file.library is not None]
        code = sum(file.library.code_size for file in libraries if file.library)
        progress = self._order.progress
        progress.begin(f"splitting {self._listing.root.resolve().name}", code)
        try:
            with open_workers(self._order.jobs) as executor:
                workers = Workers(executor, progress)
                copies = [executor.submit(self._placer.write, file) for file in self._plan.host]
                copies += [executor.submit(self._placer.write_device, file) for file in self._plan.device]
                attempt_all(lambda file: self._write_archives(file, workers), libraries, problems)
                attempt_all(lambda copy: copy.result(), copies, problems)
        finally:
            progress.end()
        raise_all(str(self._listing.root), problems)
        self._make_names()
        self._placer.finish_folders()
        return self._sizes

    def _write_archives(self, file: HostFile, workers: Workers) -> None:
        assert file.library is not None
        with file.content.view() as data:
            write_archives(data, file.library, self._order.choice, self._open_archive, workers)

    @contextmanager
    def _open_archive(self, archive: PlannedArchive) -> Iterator[FileSink]:
        path = self._made / archive.target / archive.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            yield FileSink(file)
            self._sizes[archive.path] = file.seek(0, 2)
        path.chmod(0o644)

    def _make_names(self) -> None:
        """Make links, and further names of files: a library whose markers differ from there needs a copy."""
        self._placer.make_links()
        hosts = {file.path: file for file in self._plan.host}
        for alias, first in self._listing.aliases.items():
            host = hosts.get(first)
            if host is None or host.library is None or host.library.markers(alias) == host.library.markers():
                self._link(alias, first)
            else:
                self._write_again(host, alias)

    def _link(self, alias: str, first: str) -> None:
        if first not in self._placer.left_out:
            self._placer.link(alias, first)

    def _write_again(self, host: HostFile, alias: str) -> None:
        assert host.library is not None
        with host.content.view() as data:
            patch = plan_host_file(data, host.library.markers(alias), host.library.links(), name=host.path)
        self._placer.write_patched(host, alias, patch)
