"""Splits a finished wheel into a host wheel and a device wheel for each target."""

from __future__ import annotations

import posixpath
import stat
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.kind import is_binary, is_kpack
from rocwheel.binary.kpack.markers import find_split_library
from rocwheel.binary.kpack.write import FileSink
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.reading import FileRange
from rocwheel.core.scratch import no_room, open_temporary, path_of, require_room, write_all
from rocwheel.core.workers import attempt_all, map_collecting, open_workers, raise_all
from rocwheel.core.writing import no_folder_left, safe_mode
from rocwheel.device.split.joining import checked_files
from rocwheel.device.split.splitting import LackingCode, NamedFile, StayingCode, Workers, plan_split, write_archives
from rocwheel.device.split.wheel_metadata import (
    DeviceNames,
    FinishedWheel,
    check_copied,
    check_order,
    device_metadata,
    device_names,
    device_wheel_file,
    host_metadata,
    is_device_wheel,
    is_device_wheel_of,
    looks_made_from,
    read_checked_wheel,
    read_finished_wheel,
)
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.declaration import DECLARATION_NAME, encode_declaration
from rocwheel.targets.kernel_files import classify_path, is_unknown_kernel_file, kpack_target
from rocwheel.wheels.content import BytesContent, FileContent, PatchedContent
from rocwheel.wheels.member_compression import STORED
from rocwheel.wheels.record import signature_paths
from rocwheel.wheels.sbom import SBOM_NAME, change_notes, changed_bill
from rocwheel.wheels.writing import WheelName, write_wheels
from rocwheel.wheels.zip_reader import digest_member, iter_member, member_head, read_member

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import IO

    from rocwheel.binary.code_objects import TargetId
    from rocwheel.core.errors import RocwheelError
    from rocwheel.device.split.joining import MendedFiles
    from rocwheel.device.split.splitting import HostFile, SplitChoice, SplitPlan
    from rocwheel.device.split.units import PlannedArchive
    from rocwheel.device.split.wheel_metadata import FinishedWheel, WheelSplitOrder
    from rocwheel.wheels.sdist import SourceDate
    from rocwheel.wheels.writing import OpenWheel, WheelPacker
    from rocwheel.wheels.zip_reader import ZipMember


def choose_overlay_root(wheel: FinishedWheel, code: Mapping[str, FileRange], given: str) -> str:
    """Return the overlay root: the ``given`` folder, or otherwise the only top-level folder with device code.

    ``code`` contains the relevant members. Raises `InputError` if the folder isn't in the wheel, if there is no device
    code, or if device code is in several folders. Raises `ProblemsError` for damaged files.
    """
    if given:
        root = posixpath.normpath(given.replace("\\", "/"))
        if not any(member.name.startswith(f"{root}/") for member in wheel.kept_members):
            raise InputError(wheel.source, f"has no folder {root}", expected="an overlay root in the wheel")
        return root
    problems: list[RocwheelError] = []
    shown = wheel.shown_names
    tops = attempt_all(lambda item: _top_folder(*item, shown[item[0]]), sorted(code.items()), problems)
    raise_all(wheel.source, problems)
    roots = sorted({root for root in tops if root is not None})
    if not roots:
        expected = "a wheel with a fat binary or kernel files"
        shown = wheel.shown_names
        for name, content in sorted(code.items()):
            with content.view() as data:
                if find_split_library(data, name=shown[name]) is not None:
                    remedy = "Its device code is in device wheels. To restore the code, use 'rocwheel device join'."
                    raise InputError(wheel.source, "is already split", expected=expected, remedy=remedy)
        raise InputError(wheel.source, "no device code to split off", expected=expected)
    if roots == [""]:
        found = "can't be split: its device code is at the top level, which all packages share after installation"
        remedy = "Build the wheel with the code in its own folder, so that device wheels can add to that folder."
        raise InputError(wheel.source, found, expected="device code below one folder", remedy=remedy)
    if len(roots) > 1 or not roots[0] or roots[0].endswith(".data"):
        listed = ", ".join(root or "the top level" for root in roots)
        remedy = "Specify the folder that contains the package: --overlay-root FOLDER"
        raise InputError(wheel.source, f"has device code in {listed}", expected="one folder", remedy=remedy)
    return roots[0]


def _top_folder(name: str, content: FileRange, shown: str) -> str | None:
    """Return the top-level folder of a file with device code, or `None` for other files."""
    if classify_path(name) is None:
        with content.view() as data:
            if not device_targets(data, name=shown):
                return None
    return name.partition("/")[0] if "/" in name else ""


class DeviceWheel(msgspec.Struct, frozen=True):
    """The wheel for a target or family: its path, the numbers of its archives and other files, and its size in bytes.

    In a dry run, the size is unknown.
    """

    path: str
    target: str
    archives: int
    files: int
    size: int | None


class WheelSplit(msgspec.Struct, frozen=True, kw_only=True):
    """A split wheel, its host wheel, and its device wheels; sizes are in bytes.

    In a dry run, the sizes of the new wheels are unknown.
    """

    source: str
    size: int
    overlay_root: str
    host: str
    host_size: int | None
    libraries: tuple[str, ...]
    """The files whose code goes into archives."""
    disk_before: int = 0
    """The installed size of these files before the split, in bytes."""
    disk_after: int = 0
    zeros: dict[str, int] = {}
    """The files in which at least a mebibyte of zeros replaces the code, because the space can't be removed."""
    devices: tuple[DeviceWheel, ...]
    staying: tuple[StayingCode, ...]
    left_out: tuple[str, ...]
    """Files for targets that aren't kept."""
    lacking: tuple[LackingCode, ...] = ()
    """Members that have no code for one of the targets to keep."""
    warnings: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    """Libraries that another tool split with wrong indices."""
    replaced: tuple[str, ...] = ()
    """Wheels from an earlier split that got new content."""
    removed: tuple[str, ...] = ()
    """Device wheels from an earlier split, for targets that aren't part of this split."""


class EarlierSplit(msgspec.Struct, frozen=True):
    """The files from an earlier split: files that get new content, and files that aren't part of the new split."""

    replaced: tuple[Path, ...] = ()
    stale: tuple[Path, ...] = ()

    def remove_stale(self) -> None:
        """Remove the files that aren't part of the new split, while the old host wheel still lists them.

        So if a run is interrupted, the next run can still distinguish all remaining files from unrelated wheels.
        """
        for path in self.stale:
            path.unlink(missing_ok=True)


def find_earlier(wheel: FinishedWheel, host: Path, devices: Collection[Path]) -> EarlierSplit:
    """Return the files from an earlier split of ``wheel`` next to ``host`` and ``devices``, the files of the new split.

    The device wheels of the earlier split are the wheels that the old host wheel requires, with its version, build, and
    tags. Device wheels with other tags belong to another host and aren't touched. The same is true of wheels that no
    host wheel requires. Raises `InputError`, or `ProblemsError` for several problems, if a file of the new split would
    overwrite another file. Also raises it for files with these names that aren't readable wheels.
    """
    folder = host.parent
    ending = next(iter(devices)).name.partition("-")[2]
    others = sorted(path for path in folder.glob("*.whl") if path.name.partition("-")[2] == ending and path != host)
    hosts = [host] if host.exists() else []
    old = map_collecting(str(folder), lambda path: _read_host(path, wheel), hosts)

    def read(path: Path) -> tuple[Path, bool]:
        found = read_finished_wheel(path)
        if path in devices:
            _require_device_wheel(found, wheel, old)
        return path, path in devices or _is_asked_for(found, old)

    earlier = [path for path, is_earlier in map_collecting(str(folder), read, others) if is_earlier]
    replaced = (*hosts, *(path for path in earlier if path in devices))
    return EarlierSplit(replaced, tuple(path for path in earlier if path not in devices))


def _read_host(path: Path, wheel: FinishedWheel) -> FinishedWheel:
    """Return the host wheel that the new host wheel replaces; raise `InputError` for any other wheel."""
    found = read_finished_wheel(path)
    if not device_names(found):
        expected = f"a host wheel from an earlier split of {wheel.name} {wheel.version}"
        remedy = "Specify another folder, or move that wheel elsewhere."
        raise InputError(path, "would be overwritten by the host wheel", expected=expected, remedy=remedy)
    return found


def _is_asked_for(found: FinishedWheel, hosts: Sequence[FinishedWheel]) -> bool:
    return any(is_device_wheel_of(found, host) for host in hosts)


def _require_device_wheel(found: FinishedWheel, wheel: FinishedWheel, hosts: Sequence[FinishedWheel]) -> None:
    """Raise `InputError` if a file is named like a device wheel of ``wheel`` but isn't one."""
    if not (_is_asked_for(found, hosts) or looks_made_from(found, wheel)):
        expected = f"a device wheel of {wheel.name} {wheel.version}"
        remedy = "Specify another folder, or another --device-name."
        raise InputError(found.path, "would be overwritten by a device wheel", expected=expected, remedy=remedy)


@contextmanager
def unpack_code(members: Sequence[ZipMember], source: str) -> Iterator[dict[str, FileRange]]:
    """Yield the location of each member that is a binary or is named like a kernel file; symlinks are skipped.

    Uncompressed members are used directly from the wheel. Raises `InputError` for a damaged member, `ProblemsError` for
    several damaged members, and `WorkError` if there isn't enough space.
    """
    problems: list[RocwheelError] = []
    wanted = [member for members_ in attempt_all(_as_code, members, problems) for member in members_]
    raise_all(source, problems)
    size = sum(member.size for member in wanted if member.method != STORED)
    try:
        with open_temporary() as spool:
            require_room(spool, size)
            places = attempt_all(lambda member: (member.name, _unpack(member, spool)), wanted, problems)
            raise_all(source, problems)
            yield dict(places)
    except OSError as e:
        raise no_room(source, f"its {size} unpacked bytes", e) from e


def _as_code(member: ZipMember) -> tuple[ZipMember, ...]:
    if stat.S_ISLNK(member.mode):
        return ()
    if classify_path(member.name) is not None or is_unknown_kernel_file(member.name):
        return (member,)
    head = member_head(member)
    return (member,) if is_binary(head) or is_kpack(head) else ()


def _unpack(member: ZipMember, spool: IO[bytes]) -> FileRange:
    if member.method == STORED:
        digest_member(member)
        return member.packed
    start = spool.tell()
    for piece in iter_member(member):
        write_all(spool, piece)
    spool.seek(0, 2)
    return FileRange(path_of(spool), start, member.size)


_FILE_MODE = 0o644
_COMMAND = "rocwheel device split"


class SplitWheels:
    """Writes the wheels from a split of ``wheel``, whose files below ``root`` are split according to ``plan``."""

    def __init__(self, wheel: FinishedWheel, root: str, plan: SplitPlan, names: DeviceNames, dest_dir: Path) -> None:
        self.wheel, self.root, self.plan = wheel, root, plan
        self._names, self._dest_dir = names, dest_dir
        self._members = {member.name: member for member in wheel.kept_members}

    @property
    def host_path(self) -> Path:
        """The path of the host wheel."""
        return self._dest_dir / Path(self.wheel.path).name

    @property
    def staying(self) -> tuple[StayingCode, ...]:
        """The files below the root whose device code stays in the host wheel."""
        return tuple(StayingCode(self._member_name(file), file.remark) for file in self.plan.host if file.remark)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about members that are omitted."""
        signatures = signature_paths(self.wheel.dist_info)
        lost = [self.wheel.source_of(member) for member in self.wheel.members if member.name in signatures]
        return tuple(f"{source}: left out, because it signs the old wheel's RECORD" for source in lost)

    def device_path(self, target: str) -> Path:
        """Return the path of the wheel for a target."""
        name = self._device_name(target)
        build = f"-{self.wheel.build}" if self.wheel.build else ""
        return self._dest_dir / f"{name.stem}{build}-{name.tag}.whl"

    @property
    def device_paths(self) -> tuple[Path, ...]:
        """The paths of the wheels for all targets."""
        return tuple(map(self.device_path, self.plan.packages))

    def write(self, order: WheelSplitOrder, source_date: SourceDate, before_host: Callable[[], None]) -> None:
        """Write the device wheels, call ``before_host``, and then write the host wheel.

        Raises `InputError` for damaged code, and `WorkError` if writing fails. No incomplete wheel is left behind.
        """
        order.progress.begin(f"splitting {Path(self.wheel.path).name}", sum(m.size for m in self.wheel.members))
        try:
            with (
                no_folder_left(self._dest_dir),
                open_workers(order.jobs) as executor,
                write_wheels(executor, source_date.zip_time, progress=order.progress) as packer,
            ):
                self._write_devices(packer, order, Workers(executor))
                self._write_host(packer, order, before_host)
        finally:
            order.progress.end()

    def _device_name(self, target: str) -> WheelName:
        return WheelName(self._names.distribution(target), self.wheel.version, self.wheel.file_tags)

    def _member_name(self, file: HostFile) -> str:
        return f"{self.root}/{file.path}"

    def _write_devices(self, packer: WheelPacker, order: WheelSplitOrder, workers: Workers) -> None:
        wheels = {
            target: packer.open(self.device_path(target), dist_info=self._device_name(target).dist_info)
            for target in self.plan.packages
        }
        for target, wheel in wheels.items():
            # pip removes an empty folder only if the distribution has a file in a folder above it.
            wheel.add(f"{self.root}/.device-{target}", _FILE_MODE, BytesContent(b""))
        for file in self.plan.device:
            member = self._members[f"{self.root}/{file.path}"]
            wheels[_package_of(file.target)].add_packed(member, safe_mode(member.mode))
        for host, _ in self.plan.libraries:
            self._add_archives(host, packer, wheels, order, workers)
        licenses = {f"licenses/{name}": read_member(member) for name, member in self.wheel.licenses().items()}
        for target, wheel in wheels.items():
            wheel.close({**self._device_texts(target, order), **licenses})

    def _add_archives(
        self,
        file: HostFile,
        packer: WheelPacker,
        wheels: Mapping[str, OpenWheel],
        order: WheelSplitOrder,
        workers: Workers,
    ) -> None:
        with ExitStack() as stack:
            made: list[tuple[PlannedArchive, IO[bytes]]] = []

            @contextmanager
            def open_sink(archive: PlannedArchive) -> Iterator[FileSink]:
                spool = stack.enter_context(open_temporary(buffering=1 << 20))
                made.append((archive, spool))
                yield FileSink(spool)
                spool.flush()

            try:
                write_archives(file, order.choice, open_sink, workers)
            except OSError as e:
                raise no_room(self._member_name(file), "its archives", e) from e
            for archive, spool in made:
                content = FileContent(FileRange(path_of(spool), 0, spool.seek(0, 2)))
                wheels[_package_of(archive.target)].add(f"{self.root}/{archive.path}", _FILE_MODE, content)
            # The archives are removed after the block. Splitting one library at a time keeps the required space small.
            packer.drain()

    def _device_texts(self, target: str, order: WheelSplitOrder) -> dict[str, bytes]:
        texts = {
            "METADATA": device_metadata(self.wheel, self._names, target, order.requires_of(target)),
            "WHEEL": device_wheel_file(self.wheel),
        }
        if self.wheel.declaration is not None:
            own = (a.path for a in self.plan.iter_archives() if _package_of(a.target) == target)
            archives = {kpack_target(path, source=path) for path in own}
            files = (file.content for file in self.plan.device if _package_of(file.target) == target)
            texts[DECLARATION_NAME] = encode_declaration({*archives, *_targets(files)})
        notes = change_notes(_COMMAND, {"received the device code for": [target]})
        name = canonicalize_name(self._names.distribution(target))
        return texts | changed_bill(self.wheel.members, self.wheel.dist_info, notes, name=name)

    def _write_host(self, packer: WheelPacker, order: WheelSplitOrder, before: Callable[[], None]) -> None:
        moved = {f"{self.root}/{path}" for path in (*(file.path for file in self.plan.device), *self.plan.left_out)}
        changed = {self._member_name(file): file for file in self.plan.host if file.patch is not None}
        moved.add(f"{self.wheel.dist_info}/{SBOM_NAME}")  # rewritten
        wheel = packer.open(self.host_path, dist_info=self.wheel.dist_info)
        for member in self.wheel.kept_members:
            if member.name in moved:
                continue
            mode = safe_mode(member.mode)
            file = changed.get(member.name)
            if file is None or file.patch is None:
                wheel.add_packed(member, mode)
            else:
                wheel.add(member.name, mode, PatchedContent(file.content, file.patch))
        packer.finish()
        before()
        texts = {
            "METADATA": host_metadata(self.wheel, self._names, order.host_requires),
            "WHEEL": self.wheel.wheel,
        }
        if self.wheel.declaration is not None:
            staying = (file.content for file in self.plan.host if file.library is None)
            texts[DECLARATION_NAME] = encode_declaration(_targets(staying))
        devices = [self._names.distribution(target) for target in self.plan.packages]
        files = [self._member_name(file) for file in self.plan.host if file.patch is not None]
        files += [f"{self.root}/{file.path}" for file in self.plan.device]
        notes = change_notes(_COMMAND, {"moved the device code of": files, "to": devices})
        wheel.close(texts | changed_bill(self.wheel.members, self.wheel.dist_info, notes))


def _package_of(target: str) -> str:
    return load_catalog().package_of(target)


def _targets(contents: Iterable[FileRange]) -> Iterator[TargetId]:
    for content in contents:
        with content.view() as data:
            yield from device_targets(data, name=content.path)


_OUTSIDE = "outside the overlay root"


def split_wheel(
    source: Path, dest_dir: Path, order: WheelSplitOrder, source_date: SourceDate, *, shown: str = ""
) -> WheelSplit:
    """Write the host wheel of ``source``, under the same name, and a device wheel for each target to ``dest_dir``.

    A device wheel adds the code for its target to the host wheel. Unchanged members are copied without being unpacked,
    and the same wheel produces the same output. Signatures of RECORD, which are no longer valid, are omitted. Wheels
    from an earlier split of the same wheel are replaced, or removed if this split has no wheel for their target. In
    messages, ``shown``, or by default the path, identifies the wheel. Raises the same errors as `check_order`,
    `read_checked_wheel`, `check_copied`, `choose_overlay_root`, `plan_split`, and `find_earlier`. Raises
    `ProblemsError` for several problems, and `WorkError` if writing fails. After an error, no incomplete wheel is left
    behind.
    """
    check_order(order)
    wheel = read_checked_wheel(source, shown)
    if is_device_wheel(wheel):
        raise InputError(wheel.source, "is a device wheel", expected="a wheel with a fat binary or kernel files")
    return split_members(wheel, dest_dir, order, source_date)


def split_members(
    wheel: FinishedWheel, dest_dir: Path, order: WheelSplitOrder, source_date: SourceDate, *, mend: bool = False
) -> WheelSplit:
    """Split a wheel like `split_wheel`, but from a `FinishedWheel`, whose members may come from several files.

    With ``mend``, libraries that another tool split with wrong indices are split again. Raises the same errors as
    `split_wheel` and `checked_files`.
    """
    check_copied(wheel)
    source = Path(wheel.path)
    output = dest_dir / source.name
    if output.exists() and output.samefile(source):
        raise InputError(source, "would be overwritten by its host wheel", remedy="Specify another folder.")
    with unpack_code(wheel.kept_members, wheel.source) as code:
        root = choose_overlay_root(wheel, code, order.overlay_root)
        with checked_files(_below(root, code, wheel), wheel.source, mend=mend) as checked:
            plan = _plan(wheel, root, checked.files, order.choice)
            names = DeviceNames(
                prefix=order.device_prefix or f"{wheel.name}-device", version=wheel.version, targets=plan.packages
            )
            wheels = SplitWheels(wheel, root, plan, names, dest_dir)
            earlier = find_earlier(wheel, wheels.host_path, wheels.device_paths)
            staying = (*wheels.staying, *_outside(root, code, wheel.shown_names))
            if not order.dry_run:
                wheels.write(order, source_date, before_host=earlier.remove_stale)
    return _report(wheels, staying, order, checked, earlier)


def _outside(root: str, code: Mapping[str, FileRange], shown: Mapping[str, str]) -> Iterator[StayingCode]:
    """Yield the files outside the root that have device code or are named for a target."""
    for name, content in sorted(code.items()):
        if name.startswith(f"{root}/"):
            continue
        is_kernels = classify_path(name) is not None or is_unknown_kernel_file(name)
        with content.view() as data:
            if is_kernels or device_targets(data, name=shown[name]):
                yield StayingCode(name, _OUTSIDE)


def _below(root: str, code: Mapping[str, FileRange], wheel: FinishedWheel) -> list[NamedFile]:
    start, shown = f"{root}/", wheel.shown_names
    below = ((name, content) for name, content in code.items() if name.startswith(start))
    return [NamedFile(name[len(start) :], content, shown[name]) for name, content in below]


def _plan(wheel: FinishedWheel, root: str, files: Sequence[NamedFile], choice: SplitChoice) -> SplitPlan:
    try:
        plan = plan_split(files, choice, subject=wheel.source)
    except InputError as e:
        if str(e.source).startswith(wheel.source):
            raise
        raise ProblemsError(wheel.source, [e]) from e  # about a path that would be created
    if not plan.targets:
        staying = [file for file in plan.host if file.remark]
        names = {file.path: file.name for file in files}
        problems = [InputError(names[file.path], f"can't be split: {file.remark}") for file in staying]
        raise_all(wheel.source, problems)
        expected = "a wheel with a fat binary or kernel files"
        raise InputError(wheel.source, f"no device code to split off below {root}", expected=expected)
    return plan


def _report(
    wheels: SplitWheels,
    staying: tuple[StayingCode, ...],
    order: WheelSplitOrder,
    checked: MendedFiles,
    earlier: EarlierSplit,
) -> WheelSplit:
    wheel, root, plan = wheels.wheel, wheels.root, wheels.plan
    split = [file for file, _ in plan.libraries]
    return WheelSplit(
        source=wheel.source,
        size=Path(wheel.path).stat().st_size,
        overlay_root=root,
        host=str(wheels.host_path),
        host_size=_size(wheels.host_path, order),
        libraries=tuple(f"{root}/{file.path}" for file in split),
        disk_before=sum(file.content.size for file in split),
        disk_after=sum(file.size for file in split),
        zeros={f"{root}/{file.path}": file.zeros for file in split if file.zeros},
        devices=tuple(
            DeviceWheel(
                path=str(wheels.device_path(target)),
                target=target,
                archives=sum(_package_of(archive.target) == target for archive in plan.iter_archives()),
                files=sum(_package_of(file.target) == target for file in plan.device),
                size=_size(wheels.device_path(target), order),
            )
            for target in plan.packages
        ),
        staying=staying,
        left_out=tuple(f"{root}/{path}" for path in plan.left_out),
        lacking=tuple(
            LackingCode(found.target, tuple(f"{root}/{path}" for path in found.paths)) for found in plan.lacking
        ),
        warnings=(*wheels.warnings, *checked.warnings),
        mended=tuple(f"{root}/{path}" for path in checked.mended),
        replaced=tuple(map(str, earlier.replaced)),
        removed=tuple(map(str, earlier.stale)),
    )


def _size(path: Path, order: WheelSplitOrder) -> int | None:
    return None if order.dry_run else path.stat().st_size
