"""Joins a host wheel and its device wheels into one fat wheel, or corrects split libraries in such wheels."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.binary.kpack.markers import PLACEHOLDER
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import map_collecting, open_workers, raise_all
from rocwheel.core.writing import safe_mode
from rocwheel.device.split.joining import Joins, JoinStorage, plan_join, plan_joins
from rocwheel.device.split.split_wheel import split_members, unpack_code
from rocwheel.device.split.splitting import NamedFile
from rocwheel.device.split.wheel_metadata import (
    FinishedWheel,
    check_device_wheel,
    check_order,
    device_names,
    is_device_mark,
    is_device_wheel,
    is_device_wheel_of,
    is_family,
    joined_metadata,
    own_requirements,
    read_checked_wheel,
    split_device_name,
)
from rocwheel.targets.declaration import DECLARATION_NAME, encode_declaration
from rocwheel.targets.target_set import text_sort_key
from rocwheel.wheels.content import PatchedContent
from rocwheel.wheels.metadata import parse_core_metadata
from rocwheel.wheels.sbom import SBOM_NAME, change_notes, changed_bill
from rocwheel.wheels.writing import write_wheels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rocwheel.core.reading import FileRange
    from rocwheel.device.split.joining import JoinPlan
    from rocwheel.device.split.split_wheel import WheelSplit
    from rocwheel.device.split.wheel_metadata import FinishedWheel, WheelSplitOrder
    from rocwheel.wheels.sdist import SourceDate
    from rocwheel.wheels.writing import OpenWheel, WheelPacker
    from rocwheel.wheels.zip_reader import ZipMember


def unite_members(host: FinishedWheel, devices: Sequence[FinishedWheel]) -> dict[str, ZipMember]:
    """Return the members, keyed by name, host members first, without the metadata and pip files of the device wheels.

    Raises `InputError` for a member that is in two wheels, and `ProblemsError` for several such members.
    """
    members = {member.name: member for member in host.kept_members}
    problems = []
    for device in devices:
        for member in device.kept_members:
            if member.name.startswith(f"{device.dist_info}/") or is_device_mark(member):
                continue
            other = members.setdefault(member.name, member)
            if other is not member:
                problems.append(
                    InputError(
                        member.source, f"is also in {other.packed.path}", expected="each member in only one wheel"
                    )
                )
    raise_all(host.path, problems)
    return members


class WheelJoin(msgspec.Struct, frozen=True, kw_only=True):
    """A joined wheel: its path, its size in bytes, the members with restored code, and the omitted archives."""

    path: str
    size: int
    libraries: tuple[str, ...]
    targets: tuple[str, ...]
    missing: tuple[str, ...]
    """The targets for which libraries had code before the split, but for which no device wheel has code."""
    left_out: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """The faults in archives from another tool."""


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
    """Write the wheel ``host`` to ``dest_dir`` under the same name, with the code from ``devices`` in its libraries.

    Code objects are the same, byte for byte, as before the split. The extras for device wheels are removed.

    Raises the same errors as `read_checked_wheel` and `plan_joins`, and `WorkError` if writing fails. Raises
    `InputError` for wheels that aren't this host's device wheels, and for members in two wheels. Raises `ProblemsError`
    for several problems.
    """
    output = dest_dir / host.name
    if output.exists() and output.samefile(host):
        raise InputError(host, "would be overwritten by the joined wheel", remedy="Specify another folder.")
    host_wheel, device_wheels = _read_wheels(host, devices)
    members = unite_members(host_wheel, device_wheels)
    with unpack_code(tuple(members.values()), str(host)) as code:
        files = [NamedFile(name, content, members[name].source) for name, content in sorted(code.items())]
        found = plan_joins(files, subject=str(host), remedy="Specify the host wheel from the split.")
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
    """Return the host wheel and its device wheels; raise errors for other wheels."""
    host_wheel, *device_wheels = map_collecting("wheels", read_checked_wheel, (host, *devices))
    if is_device_wheel(host_wheel):
        remedy = "Specify the host wheel first, and then the device wheels."
        raise InputError(host, "is a device wheel", expected="the host wheel", remedy=remedy)
    map_collecting("wheels", lambda device: check_device_wheel(device, host_wheel), device_wheels)
    return host_wheel, device_wheels


def _report(output: Path, found: Joins) -> WheelJoin:
    plans = found.joins.values()
    return WheelJoin(
        path=str(output),
        size=output.stat().st_size,
        libraries=tuple(found.joins),
        targets=tuple(sorted({target for plan in plans for target in plan.targets}, key=text_sort_key)),
        missing=tuple(sorted({target for plan in plans for target in plan.missing}, key=text_sort_key)),
        left_out=tuple(sorted(found.used)),
        warnings=found.warnings,
    )


class _Joining:
    """Writes a joined wheel."""

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
        texts = {"METADATA": joined_metadata(self._host), "WHEEL": self._host.wheel}
        if self._host.declaration is not None:
            targets = {parse_target_id(text) for plan in self._found.joins.values() for text in plan.targets}
            for name, content in self._code.items():
                with content.view() as data:
                    targets.update(device_targets(data, name=name))
            texts[DECLARATION_NAME] = encode_declaration(targets)
        notes = change_notes("rocwheel device join", {"restored the device code of": [*self._found.joins]})
        wheel.close(texts | changed_bill(self._host.members, self._host.dist_info, notes))

    def _add_joined(self, member: ZipMember, plan: JoinPlan, wheel: OpenWheel, packer: WheelPacker) -> None:
        content = self._code[member.name]
        with ExitStack() as stack:
            data = stack.enter_context(content.view())
            patch = stack.enter_context(plan_join(data, plan, self._storage, name=member.source))
            wheel.add(member.name, safe_mode(member.mode), PatchedContent(content, patch))
            # The bundles are removed after the block.
            packer.drain()


def resplit_wheels(
    paths: Sequence[Path], dest_dir: Path, order: WheelSplitOrder, source_date: SourceDate
) -> tuple[WheelSplit, ...]:
    """Split each host wheel among ``paths`` again, with the code from its device wheels, which are also in ``paths``.

    Device wheels keep their names and extra requirements, unless ``order`` changes them. Libraries with correct
    indices, and their archives, don't change. Raises the same errors as `split_members`. Also raises `InputError`, or
    `ProblemsError` for several problems, for device wheels without their host, and if a wheel would overwrite one of
    ``paths``.
    """
    check_order(order)
    wheels = map_collecting("wheels", read_checked_wheel, paths)
    hosts = [wheel for wheel in wheels if not any(is_device_wheel_of(wheel, other) for other in wheels)]
    outputs = [(path, dest_dir / path.name) for path in paths]
    there = [path for path, output in outputs if output.exists() and output.samefile(path)]
    found, remedy = f"is in {dest_dir}, and would be overwritten", "Specify another folder."
    raise_all("wheels", [InputError(path, found, remedy=remedy) for path in there])

    def mend(host: FinishedWheel) -> WheelSplit:
        devices = [wheel for wheel in wheels if is_device_wheel_of(wheel, host) and wheel.file_tags == host.file_tags]
        # The order, completed with the names and requirements of the existing device wheels. Each target keeps its own
        # requirements; a target without a wheel gets the requirements that all other targets share.
        named = sorted(split_device_name(name) for name in device_names(host))
        prefix = order.device_prefix or next((prefix for prefix, _ in named), "")
        if order.device_requires:
            own = msgspec.structs.replace(order, device_prefix=prefix)
        else:
            kept = {split_device_name(device.name)[1]: tuple(own_requirements(device, host)) for device in devices}
            shared = _shared({target: texts for target, texts in kept.items() if not is_family(target)})
            own = msgspec.structs.replace(order, device_prefix=prefix, device_requires=shared, kept_requires=kept)
        return split_members(_united(host, devices), dest_dir, own, source_date, mend=True)

    return tuple(map_collecting("wheels", mend, hosts))


def _united(host: FinishedWheel, devices: Sequence[FinishedWheel]) -> FinishedWheel:
    """Return the host wheel as if it contained all members, with the metadata from before the split."""
    anew = {member.name for member in host.members} - {member.name for member in host.kept_members}
    members = (*unite_members(host, devices).values(), *(member for member in host.members if member.name in anew))
    metadata = joined_metadata(host)
    fields, _ = parse_core_metadata(metadata)
    return msgspec.structs.replace(host, members=members, metadata=metadata, fields=fields)


def _shared(requires: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the requirements that all targets share, with ``@GFXARCH@`` in place of the target's name."""
    texts = [dict.fromkeys(_general(text, target) for text in found) for target, found in requires.items()]
    return tuple(text for text in texts[0] if all(text in others for others in texts)) if texts else ()


def _general(text: str, target: str) -> str:
    """Return a requirement in which ``@GFXARCH@`` replaces a target, but not the beginning of a longer name."""
    return re.sub(rf"(?<![0-9A-Za-z]){re.escape(target)}(?![-_.]*[0-9A-Za-z])", PLACEHOLDER, text)
