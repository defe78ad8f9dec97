"""Editing a code object that is a file by itself, as if it were the one entry of a bundle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.bundles.plain import BundlePart
from rocwheel.binary.code_objects.errors import DeviceCodeError, Place

if TYPE_CHECKING:
    from rocwheel.binary.code_objects.code_object import CodeObject
    from rocwheel.device.editing.bundle import BundleEdit

__all__ = ["edit_code_object"]

_ID = "hipv4-amdgcn-amd-amdhsa--"


def edit_code_object(
    data: memoryview, code: CodeObject, edit: BundleEdit, *, place: Place
) -> tuple[memoryview, ...] | None:
    """Return, as buffers, the code object that ``edit`` adds, which takes the place of ``data``; none if it adds none.

    Raises `DeviceCodeError` when it takes ``data`` away or adds more than one, and for code of an unknown processor.
    """
    if code.target is None:
        found = f"a code object whose flags {code.flags:#x} name no processor"
        raise DeviceCodeError(place, found, expected="one for a processor that compilers know")
    old = BundlePart(f"{_ID}{code.target}", (data,))
    edited = edit((old,), place=place)
    new = [part for part in edited if part is not old]
    if not edited:
        raise DeviceCodeError(place, "a code object that is all for other targets", remedy="Leave the file out.")
    if len(new) > 1:
        targets = ", ".join(part.spelling.removeprefix(_ID) for part in new)
        raise DeviceCodeError(
            place,
            f"a code object, which is for one target, to be for {targets}",
            expected="one target",
            remedy="Make a file for each.",
        )
    return new[0].payload if new else None
