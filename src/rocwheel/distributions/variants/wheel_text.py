"""Whether the file name of a wheel and its ``variant.json`` (:pep:`825`, a draft) say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.distributions.variants.draft import load_draft
from rocwheel.distributions.variants.variant_json import parse_metadata

if TYPE_CHECKING:
    from rocwheel.distributions.variants.variant_json import VariantMetadata

__all__ = ["read_wheel_text"]


def read_wheel_text(data: bytes | None, *, label: str, wheel: str, dist_info: str) -> VariantMetadata | None:
    """Return what the ``variant.json`` in a wheel says, ``data``, whose file name has ``label``; none for plain wheels.

    Raises `InputError` for a label without the file, and for the file without a label: installers that know variants
    take such a wheel for one that serves every machine. Raises as `parse_metadata` does, too.
    """
    place = f"{dist_info}/{load_draft().names.in_wheel}"
    if data is None and not label:
        return None
    if data is None:
        found = f"is named as the variant {quoted(label)} and has no {place}"
        raise InputError(wheel, found, expected="a variant wheel as PEP 825 (a draft) has it")
    if not label:
        expected = "NAME-VERSION-PYTHON-ABI-PLATFORM-LABEL.whl"
        found = f"has {place}, as variant wheels do, and no label in its file name"
        raise InputError(wheel, found, expected=expected, remedy="Rename it back.")
    return parse_metadata(data, source=f"{wheel}!{place}", label=label)
