"""The public functions that split device code from host files and join it again: for folders and for wheels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rocwheel.binary.bundles.compressed import HIGHEST_LEVEL
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.binary.kpack.write import DEFAULT_LEVEL, LEVELS
from rocwheel.core.errors import InputError
from rocwheel.core.names import GivenPath, GivenPaths, paths_given
from rocwheel.core.workers import worker_count
from rocwheel.device.split.files import SplitChoice
from rocwheel.device.split.join import JoinStorage
from rocwheel.device.split.join_tree import JoinReport, join_tree
from rocwheel.device.split.join_wheels import WheelJoin
from rocwheel.device.split.join_wheels import join_wheels as join_these
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.split_wheel import split_wheel as split_this
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.targets.machine import native_targets
from rocwheel.targets.spelling.target_set import parse_target_set
from rocwheel.wheels.sdist import SourceDate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.device.split.split_tree import SplitReport
    from rocwheel.device.split.split_wheel import WheelSplit

__all__ = ["join", "join_wheels", "split", "split_wheel"]


def split(
    path: GivenPath,
    dest_dir: GivenPath,
    *,
    targets: Iterable[str] | str = (),
    scheme: Literal["zstd-per-kernel", "none"] = "zstd-per-kernel",
    level: int = DEFAULT_LEVEL,
    mend: bool = False,
    jobs: int = 0,
) -> SplitReport:
    """Split a folder or a library: a folder without device code, and one for each GPU target to be laid over it.

    Libraries find their code in ROCm's kpack archives, below ``.kpack``. The same input gives the same bytes.

    Args:
        path: The folder, or a library.
        dest_dir: The folder that gets ``host`` and a folder for each target; it must not exist.
        targets: The GPU targets whose code is kept, in any spelling; without any, all.
        scheme: How archives store code objects: each in a zstd frame of its own, or as they are.
        level: The zstd level of code objects, 1 to 19.
        mend: Whether libraries that another tool has split with wrong indices are split again.
        jobs: The number of workers; 0 for one per core.

    Example:
        ```python
        from rocwheel import api

        report = api.split("prefix", "parts", targets="gfx90a,gfx1030")
        for share in report.targets:
            print(share.target, share.archives, share.size)
        ```
    """
    order = SplitOrder(choice=_choice(targets, scheme, level), jobs=worker_count(jobs), mend=mend)
    return split_tree(Path(path), Path(dest_dir), order)


def split_wheel(
    wheel: GivenPath,
    dest_dir: GivenPath,
    *,
    targets: Iterable[str] | str = (),
    overlay_root: str = "",
    device_name: str = "",
    level: int = DEFAULT_LEVEL,
    jobs: int = 0,
) -> WheelSplit:
    """Split a finished wheel: a host wheel under its old name, and a device wheel for each GPU target.

    The host wheel has an extra ``device-TARGET`` for each of them, and ``device-all``.

    Args:
        wheel: The wheel.
        dest_dir: The folder for the new wheels, not that of the old one; it is made when it does not exist.
        targets: The GPU targets whose code is kept, in any spelling; without any, all.
        overlay_root: The folder of the wheel that device wheels are laid over; by default the one with device code.
        device_name: What the names of device wheels begin with; by default that of the wheel and ``-device``.
        level: The zstd level of code objects, 1 to 19.
        jobs: The number of workers; 0 for one per core.

    Example:
        ```python
        from rocwheel import api

        report = api.split_wheel("torch-2.9.0-cp312-cp312-linux_x86_64.whl", "dist", overlay_root="torch")
        print(report.host, [device.path for device in report.devices])
        ```
    """
    order = WheelSplitOrder(
        choice=_choice(targets, Scheme.ZSTD, level),
        overlay_root=overlay_root,
        device_prefix=device_name,
        jobs=worker_count(jobs),
    )
    return split_this(Path(wheel), Path(dest_dir), order, SourceDate.from_environment(os.environ))


def join(
    host: GivenPath, devices: GivenPaths, dest_dir: GivenPath, *, compress: bool = False, level: int = DEFAULT_LEVEL
) -> JoinReport:
    """Join a host folder and any folders of targets: libraries get their code back, byte for byte.

    Args:
        host: The host folder, or one split library.
        devices: The folder or folders of targets.
        dest_dir: The folder for the joined tree; it must not exist.
        compress: Whether all bundles are compressed, also those that were plain before the split.
        level: The zstd level of compressed bundles; higher ones are tried where these have no room.

    Example:
        ```python
        from rocwheel import api

        report = api.join("parts/host", ["parts/gfx90a", "parts/gfx1030"], "fat")
        print([(library.path, library.missing) for library in report.libraries])
        ```
    """
    storage = _join_storage(level, compress=compress)
    return join_tree(Path(host), paths_given(devices), Path(dest_dir), storage)


def join_wheels(
    host: GivenPath,
    devices: GivenPaths,
    dest_dir: GivenPath,
    *,
    compress: bool = False,
    level: int = DEFAULT_LEVEL,
    jobs: int = 0,
) -> WheelJoin:
    """Join a host wheel and any of its device wheels: one wheel under the host's name, without the extras.

    Args:
        host: The host wheel.
        devices: The device wheel or wheels.
        dest_dir: The folder for the joined wheel, not that of the host; it is made when it does not exist.
        compress: Whether all bundles are compressed, also those that were plain before the split.
        level: The zstd level of compressed bundles; higher ones are tried where these have no room.
        jobs: The number of workers; 0 for one per core.

    Example:
        ```python
        from pathlib import Path

        from rocwheel import api

        host = "dist/torch-2.9.0-cp312-cp312-linux_x86_64.whl"
        report = api.join_wheels(host, Path("dist").glob("torch_device_*.whl"), "fat")
        print(report.path, report.targets)
        ```
    """
    moment = SourceDate.from_environment(os.environ)
    storage = _join_storage(level, compress=compress)
    return join_these(Path(host), paths_given(devices), Path(dest_dir), moment, storage, jobs=worker_count(jobs))


def _join_storage(level: int, *, compress: bool) -> JoinStorage:
    if not 1 <= level <= HIGHEST_LEVEL:
        parameter, found = "level", f"is {level}"
        raise InputError(parameter, found, expected=f"a level from 1 to {HIGHEST_LEVEL}")
    return JoinStorage(compress=compress, level=level)


def _choice(targets: Iterable[str] | str, scheme: str, level: int) -> SplitChoice:
    if scheme not in list(Scheme):
        parameter, found = "scheme", f"is {scheme!r}"
        raise InputError(parameter, found, expected=f"one of {', '.join(one.value for one in Scheme)}")
    if level not in LEVELS:
        parameter, found = "level", f"is {level}"
        raise InputError(parameter, found, expected=f"a level from {LEVELS[0]} to {LEVELS[-1]}")
    words = [targets] if isinstance(targets, str) else list(targets)
    keep = parse_target_set(words, source="targets", native=native_targets).ids if words else ()
    return SplitChoice(keep=keep, scheme=Scheme(scheme), level=level)
