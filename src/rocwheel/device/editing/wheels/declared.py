"""The targets of a wheel whose device code is edited: those that its files have code for, and those it declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError
from rocwheel.device.editing.prune import serves
from rocwheel.targets.declaration import decode_declaration, encode_declaration
from rocwheel.targets.spelling.target_set import id_sort_key

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


__all__ = ["WheelTargets"]


class WheelTargets(msgspec.Struct, frozen=True):
    """The targets that a wheel's files have code for, before and after an edit."""

    before: set[TargetId] = msgspec.field(default_factory=set)
    after: set[TargetId] = msgspec.field(default_factory=set)

    def require_any(self, wheel: Path, keep: Sequence[TargetId]) -> None:
        """Raise `InputError` when all of the code went."""
        if self.before and not self.after:
            offered = ", ".join(map(str, sorted(self.before, key=id_sort_key)))
            expected = f"code for one of {', '.join(map(str, keep))}"
            raise InputError(
                wheel, "has no code for any target to keep", expected=expected, remedy=f"It has code for {offered}."
            )

    def redeclare(self, declaration: bytes, keep: Sequence[TargetId] | None, *, source: str) -> bytes:
        """Return the wheel's declaration with what the edit removed and added; as it was when that is nothing.

        Targets that no file has code for are left out when they are not to be kept. A record of how the package fits
        together with others, which was made before the edit, goes. Raises `InputError` for a malformed declaration.
        """
        old = set(decode_declaration(declaration, source=source).targets)
        kept = {target for target in old if target in self.before or _is_kept(target, keep)}
        new = (kept - (self.before - self.after)) | (self.after - self.before)
        return declaration if new == old else encode_declaration(new)


def _is_kept(target: TargetId, keep: Sequence[TargetId] | None) -> bool:
    return keep is None or any(serves(target, wanted) for wanted in keep)
