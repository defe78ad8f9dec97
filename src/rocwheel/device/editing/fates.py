"""The fate of each file when targets are pruned from a folder or a wheel: it stays, changes or goes."""

from __future__ import annotations

import enum
import logging
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.code_objects import TargetId, is_code_object, parse_target_id
from rocwheel.binary.kind import is_bundle, is_kpack
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.device.editing.places import UnlinkedCodeError, list_places
from rocwheel.device.editing.prune import serves
from rocwheel.device.reading.images import require_sound_image
from rocwheel.targets.kernel_files.names import is_kernel_file, targets_in_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import PurePath

    from rocwheel.core.reading import Data

__all__ = ["Fate", "FileCode", "file_fate", "file_targets", "link_fate", "read_file_code"]

logger = logging.getLogger(__name__)


class FileCode(msgspec.Struct, frozen=True, kw_only=True):
    """The device code of a file, as far as it decides what becomes of the file."""

    targets: tuple[TargetId, ...] = ()
    is_code_alone: bool = False
    """Whether the file is a code object or bundles, and nothing else."""
    has_bundles: bool = False
    """Whether there are bundles that can be edited."""
    is_archive: bool = False
    """Whether the file is a kpack archive, which can be compressed and pruned."""


class Fate(enum.Enum):
    """What becomes of a file or symlink of the tree."""

    DROPPED = "dropped"
    EDITED = "edited"
    COPIED = "copied"


def read_file_code(data: Data, name: str) -> FileCode:
    """Read the device code of the file ``name``; what isn't linked yet can't be edited, and is warned of in the log.

    Raises `InputError` for damaged files, DLLs and programs without device code among them.
    """
    require_sound_image(data, name=name)
    return FileCode(
        targets=file_targets(data, name),
        is_code_alone=is_code_object(data) or is_bundle(data),
        has_bundles=_has_bundles(data, name),
        is_archive=is_kpack(data),
    )


def file_targets(data: Data, name: str) -> tuple[TargetId, ...]:
    """Return every target that the file ``name`` has code for; of a kpack archive, those that it lists.

    Raises `InputError` for damaged files.
    """
    if is_kpack(data):
        return tuple(parse_target_id(target, source=name) for target in read_archive(data, name=name).targets)
    return device_targets(data, name=name)


def _has_bundles(data: Data, name: str) -> bool:
    try:
        return bool(list_places(data, name=name))
    except UnlinkedCodeError as e:
        logger.warning("%s: %s, which stays as it is", e.source, e.found)
        return False


def link_fate(place: PurePath, keep: Sequence[TargetId]) -> Fate:
    """Return what becomes of a symlink at ``place`` in the tree, by its name."""
    return Fate.DROPPED if is_kernel_file(place.name) and _is_named_for_others(place, keep) else Fate.COPIED


def file_fate(place: PurePath, code: FileCode, keep: Sequence[TargetId]) -> Fate:
    """Return what becomes of a file at ``place`` in the tree, by its device code, or its name if that says more."""
    if code.targets:
        is_device_code = code.is_code_alone or code.is_archive
        is_for_others = (is_device_code or _is_named_for_others(place, keep)) and not _is_kept(code.targets, keep)
    else:
        is_for_others = is_kernel_file(place.name) and _is_named_for_others(place, keep)
    if is_for_others:
        return Fate.DROPPED
    is_mixed = code.is_archive and not all(_is_kept([target], keep) for target in code.targets)
    return Fate.EDITED if code.has_bundles or is_mixed else Fate.COPIED


def _is_kept(targets: Iterable[TargetId], keep: Sequence[TargetId]) -> bool:
    return any(serves(target, wanted) for target in targets for wanted in keep)


def _is_named_for_others(place: PurePath, keep: Sequence[TargetId]) -> bool:
    targets = targets_in_path(str(place))
    return bool(targets) and not _is_kept(targets, keep)
