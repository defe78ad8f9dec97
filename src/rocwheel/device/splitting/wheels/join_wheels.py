"""Joining a host wheel and any of its device wheels: one fat wheel again."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import convert_all, open_workers
from rocwheel.core.writing import safe_mode
from rocwheel.device.splitting.files import NamedFile
from rocwheel.device.splitting.joining.join_library import JoinStorage, plan_join
from rocwheel.device.splitting.joining.plan_joins import Joins, plan_joins
from rocwheel.device.splitting.wheels.device_wheels import check_device_wheel, is_device_wheel
from rocwheel.device.splitting.wheels.finished_wheel import FinishedWheel, read_finished_wheel
from rocwheel.device.splitting.wheels.metadata import joined_metadata
from rocwheel.device.splitting.wheels.united import unite_members
from rocwheel.device.splitting.wheels.unpacked import unpack_code
from rocwheel.targets.declaration import DECLARATION_NAME, encode_declaration
from rocwheel.wheels.content import PatchedContent
from rocwheel.wheels.sbom import SBOM_NAME, change_notes, changed_bill
from rocwheel.wheels.writing import write_wheels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rocwheel.binary.code_objects import TargetId
    from rocwheel.core.reading import FileRange
    from rocwheel.device.splitting.joining.library import JoinPlan
    from rocwheel.wheels.sdist import SourceDate
    from rocwheel.wheels.writing import OpenWheel, WheelPacker
    from rocwheel.wheels.zip_reader import ZipMember

__all__ = ["WheelJoin", "join_wheels"]


class WheelJoin(msgspec.Struct, frozen=True, kw_only=True):
    """A joined wheel: its path and size in bytes, the members that got their code back, the archives left out."""

    path: str
    size: int
    libraries: tuple[str, ...]
    targets: tuple[str, ...]
    missing: tuple[str, ...]
    """Targets that libraries had code for before they were split, and that no device wheel brings."""
    left_out: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """What is wrong with archives that another tool has made."""


def join_wheels(
    host: Path,
    devices: Sequence[Path],
    dest_dir: Path,
    source_date: SourceDate,
    storage: JoinStorage | None = None,
    *,
    jobs: int = 1,
    progress: Progress = SILENT,
) -> WheelJoin:
    """Write to ``dest_dir``, under the name of ``host``, the wheel with the code of ``devices`` in its libraries again.

    Code objects are those that were split off, byte for byte; the extras for device wheels are gone.
    Raises `InputError`, or `ProblemsError` for several: as `read_finished_wheel` and `plan_joins` do, for wheels that
    are no device wheels of this host, and for members that two of them have; `WorkError` when writing fails.
    """
    output = dest_dir / host.name
    if output.exists() and output.samefile(host):
        raise InputError(host, "would be overwritten by the joined wheel", remedy="Name another folder.")
    host_wheel, device_wheels = _read_wheels(host, devices)
    members = unite_members(host_wheel, device_wheels)
    with unpack_code(tuple(members.values()), str(host)) as code:
        files = [NamedFile(name, content, members[name].source) for name, content in sorted(code.items())]
        found = plan_joins(files, subject=str(host), remedy="Give the wheel that was split off as the host.")
        job = _Joining(host_wheel, members, code, found, storage or JoinStorage())
        progress.begin(f"joining {host.name}", sum(member.size for member in members.values()))
        try:
            with (
                open_workers(jobs) as executor,
                write_wheels(executor, source_date.zip_time, progress=progress) as packer,
            ):
                job.write(packer, output)
        finally:
            progress.end()
    return _report(output, found)


def _read_wheels(host: Path, devices: Sequence[Path]) -> tuple[FinishedWheel, list[FinishedWheel]]:
    """Return the host wheel and its device wheels; raise for wheels that are none of these."""
    host_wheel, *device_wheels = convert_all("wheels", read_finished_wheel, (host, *devices))
    if is_device_wheel(host_wheel):
        remedy = "Give its host wheel first, and device wheels behind it."
        raise InputError(host, "is a device wheel", expected="the host wheel", remedy=remedy)
    convert_all("wheels", lambda device: check_device_wheel(device, host_wheel), device_wheels)
    return host_wheel, device_wheels


def _report(output: Path, found: Joins) -> WheelJoin:
    plans = found.joins.values()
    return WheelJoin(
        path=str(output),
        size=output.stat().st_size,
        libraries=tuple(found.joins),
        targets=tuple(sorted({target for plan in plans for target in plan.targets})),
        missing=tuple(sorted({target for plan in plans for target in plan.missing})),
        left_out=tuple(sorted(found.used)),
        warnings=found.warnings,
    )


class _Joining:
    """The writing of a joined wheel."""

    def __init__(
        self,
        host: FinishedWheel,
        members: Mapping[str, ZipMember],
        code: Mapping[str, FileRange],
        found: Joins,
        storage: JoinStorage,
    ) -> None:
        self._host, self._storage = host, storage
        self._members, self._code, self._found = members, code, found

    def write(self, packer: WheelPacker, output: Path) -> None:
        wheel = packer.open(output, dist_info=self._host.dist_info)
        for name, member in self._members.items():
            plan = self._found.joins.get(name)
            if plan is not None:
                self._add_joined(member, plan, wheel, packer)
            elif name not in self._found.used and name != f"{self._host.dist_info}/{SBOM_NAME}":
                wheel.add_packed(member, safe_mode(member.mode))
        packer.drain()
        wheel.close(self._texts())

    def _add_joined(self, member: ZipMember, plan: JoinPlan, wheel: OpenWheel, packer: WheelPacker) -> None:
        content = self._code[member.name]
        with ExitStack() as stack:
            data = stack.enter_context(content.view())
            patch = stack.enter_context(plan_join(data, plan.units, plan.links, self._storage, name=member.source))
            wheel.add(member.name, safe_mode(member.mode), PatchedContent(content, patch))
            # The bundles go with the block.
            packer.drain()

    def _texts(self) -> dict[str, bytes]:
        texts = {"METADATA": joined_metadata(self._host), "WHEEL": self._host.wheel}
        if self._host.declaration is not None:
            texts[DECLARATION_NAME] = encode_declaration(self._targets())
        notes = change_notes("rocwheel device join", {"brought device code back to": [*self._found.joins]})
        return texts | changed_bill(self._host.members, self._host.dist_info, notes)

    def _targets(self) -> set[TargetId]:
        targets = {parse_target_id(text) for plan in self._found.joins.values() for text in plan.targets}
        for name, content in self._code.items():
            with content.view() as data:
                targets.update(device_targets(data, name=name))
        return targets
