"""What a variant wheel (:pep:`825`, a draft) says of itself, read for an index that lists it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.distributions.variants.draft import load_draft
from rocwheel.distributions.variants.variant_json import render_metadata
from rocwheel.distributions.variants.wheel_text import read_wheel_text
from rocwheel.distributions.zip.dist_info import find_dist_info
from rocwheel.distributions.zip.reader import read_member

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rocwheel.distributions.zip.reader import ZipMember

__all__ = ["read_variant_text"]


def read_variant_text(path: Path, members: Mapping[str, ZipMember], label: str) -> str:
    """Return the ``variant.json`` of a wheel, spelled as rocwheel does; empty for a plain wheel.

    ``label`` is that of the file name, empty for none. Raises as `read_wheel_text` does.
    """
    dist_info = find_dist_info(path, members)
    member = members.get(f"{dist_info}/{load_draft().names.in_wheel}")
    data = read_member(member) if member is not None else None
    metadata = read_wheel_text(data, label=label, wheel=str(path), dist_info=dist_info)
    return render_metadata(metadata).decode() if metadata is not None else ""
