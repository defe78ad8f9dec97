"""Writing the wheels of a split: the device wheels first, the host wheel, which names them, at last."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.kpack.write import FileSink
from rocwheel.core.reading import FileRange
from rocwheel.core.scratch import no_room, open_temporary, path_of
from rocwheel.core.workers import open_workers
from rocwheel.core.writing import safe_mode
from rocwheel.device.splitting.wheels.metadata import device_metadata, device_wheel_file, host_metadata
from rocwheel.device.splitting.wheels.report import StayingFile
from rocwheel.device.splitting.write_archives import Workers, write_archives
from rocwheel.targets.catalog.catalog import load_catalog
from rocwheel.targets.declaration import DECLARATION_NAME, encode_declaration
from rocwheel.targets.kernel_files.names import kpack_target
from rocwheel.wheels.content import BytesContent, FileContent, PatchedContent
from rocwheel.wheels.sbom import SBOM_NAME, change_notes, changed_bill
from rocwheel.wheels.writing import WheelName, write_wheels
from rocwheel.wheels.zip_directory import SIGNATURES
from rocwheel.wheels.zip_reader import read_member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import IO

    from rocwheel.binary.code_objects import TargetId
    from rocwheel.device.splitting.files import HostFile, SplitPlan
    from rocwheel.device.splitting.planning.library import PlannedArchive
    from rocwheel.device.splitting.wheels.finished_wheel import FinishedWheel
    from rocwheel.device.splitting.wheels.names import DeviceNames
    from rocwheel.device.splitting.wheels.order import WheelSplitOrder
    from rocwheel.wheels.sdist import SourceDate
    from rocwheel.wheels.writing import OpenWheel, WheelPacker

__all__ = ["SplitWheels"]

_FILE_MODE = 0o644
_COMMAND = "rocwheel device split"


class SplitWheels:
    """The wheels that come of ``wheel``, whose files below ``root`` are split by ``plan``."""

    def __init__(self, wheel: FinishedWheel, root: str, plan: SplitPlan, names: DeviceNames, dest_dir: Path) -> None:
        self.wheel, self.root, self.plan = wheel, root, plan
        self._names, self._dest_dir = names, dest_dir
        self._members = {member.name: member for member in wheel.kept_members}

    @property
    def host_path(self) -> Path:
        """Where the host wheel goes."""
        return self._dest_dir / Path(self.wheel.path).name

    @property
    def staying(self) -> tuple[StayingFile, ...]:
        """The files below the root whose device code stays in the host wheel."""
        return tuple(StayingFile(self._member_name(file), file.remark) for file in self.plan.host if file.remark)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is lost."""
        signatures = {f"{self.wheel.dist_info}/{name}" for name in SIGNATURES}
        lost = [self.wheel.source_of(member) for member in self.wheel.members if member.name in signatures]
        return tuple(f"{source}: left out, as it signs the RECORD of the old wheel" for source in lost)

    def device_path(self, target: str) -> Path:
        """Return where the wheel of a target goes."""
        name = self._device_name(target)
        build = f"-{self.wheel.build}" if self.wheel.build else ""
        return self._dest_dir / f"{name.stem}{build}-{name.tag}.whl"

    @property
    def device_paths(self) -> tuple[Path, ...]:
        """Where the wheels of all targets go."""
        return tuple(map(self.device_path, self.plan.packages))

    def write(self, order: WheelSplitOrder, source_date: SourceDate, before_host: Callable[[], None]) -> None:
        """Write all wheels, and call ``before_host`` when the device wheels are there and the host wheel is not.

        Raises `InputError` for damaged code, and `WorkError`; then no wheel is left half.
        """
        order.progress.begin(f"splitting {Path(self.wheel.path).name}", sum(m.size for m in self.wheel.members))
        try:
            with (
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
            # pip removes the folders that become empty only below those in which the distribution has a file.
            wheel.add(f"{self.root}/.device-{target}", _FILE_MODE, BytesContent(b""))
        for file in self.plan.device:
            member = self._members[f"{self.root}/{file.path}"]
            wheels[_package_of(file.target)].add_packed(member, safe_mode(member.mode))
        for host in self.plan.host:
            if host.library is not None:
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
        assert file.library is not None
        with ExitStack() as stack:
            made: list[tuple[PlannedArchive, IO[bytes]]] = []

            @contextmanager
            def open_sink(archive: PlannedArchive) -> Iterator[FileSink]:
                spool = stack.enter_context(open_temporary(buffering=1 << 20))
                made.append((archive, spool))
                yield FileSink(spool)
                spool.flush()

            try:
                with file.content.view() as data:
                    write_archives(data, file.library, order.choice, open_sink, workers)
            except OSError as e:
                raise no_room(self._member_name(file), "its archives", e) from e
            for archive, spool in made:
                content = FileContent(FileRange(path_of(spool), 0, spool.seek(0, 2)))
                wheels[_package_of(archive.target)].add(f"{self.root}/{archive.path}", _FILE_MODE, content)
            # The archives go with the block; those of one library at a time keep the room that is needed small.
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
        notes = change_notes(_COMMAND, {"took the device code for": [target]})
        name = canonicalize_name(self._names.distribution(target))
        return texts | changed_bill(self.wheel.members, self.wheel.dist_info, notes, name=name)

    def _write_host(self, packer: WheelPacker, order: WheelSplitOrder, before: Callable[[], None]) -> None:
        moved = {f"{self.root}/{path}" for path in (*(file.path for file in self.plan.device), *self.plan.left_out)}
        changed = {self._member_name(file): file for file in self.plan.host if file.patch is not None}
        moved.add(f"{self.wheel.dist_info}/{SBOM_NAME}")  # written anew
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
        wheel.close(self._host_texts(order))

    def _host_texts(self, order: WheelSplitOrder) -> dict[str, bytes]:
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
        return texts | changed_bill(self.wheel.members, self.wheel.dist_info, notes)


def _package_of(target: str) -> str:
    return load_catalog().package_of(target)


def _targets(contents: Iterable[FileRange]) -> Iterator[TargetId]:
    for content in contents:
        with content.view() as data:
            yield from device_targets(data, name=content.path)
