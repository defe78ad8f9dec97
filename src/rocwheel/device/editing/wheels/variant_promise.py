"""What a wheel variant (:pep:`825`, a draft) promises of its code, which has to be true after an edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError
from rocwheel.targets.serving import serves
from rocwheel.wheels.names import split_label
from rocwheel.wheels.variants import load_draft, read_wheel_text
from rocwheel.wheels.zip_reader import read_member

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rocwheel.wheels.zip_reader import ZipMember

__all__ = ["check_promise"]


def check_promise(wheel: Path, dist_info: str, members: Mapping[str, ZipMember], keep: Sequence[TargetId]) -> None:
    """Raise `InputError` for a wheel variant for GPUs of which code for the targets to ``keep`` doesn't serve each.

    Raises as `read_wheel_text` does, too: installers would take the wheel for what it is not.
    """
    member = members.get(f"{dist_info}/{load_draft().names.in_wheel}")
    data = read_member(member) if member is not None else None
    metadata = read_wheel_text(data, label=split_label(wheel.name)[1], wheel=str(wheel), dist_info=dist_info)
    if metadata is None:
        return
    provider = load_draft().provider
    values = metadata.properties.get(provider.namespace, {}).get(provider.feature, ())
    lost = [value for value in values if not any(serves(str(target), [TargetId(value)]) for target in keep)]
    if lost:
        found = f"is the wheel variant for {', '.join(values)}, and would lose its code for {', '.join(lost)}"
        raise InputError(wheel, found, remedy="Keep these targets, too, or prune the plain wheel.")
