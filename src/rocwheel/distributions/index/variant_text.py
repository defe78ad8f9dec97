"""What a variant wheel (:pep:`825`, a draft) says of itself, read for an index that lists it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.distributions.variants.draft import load_draft
from rocwheel.distributions.variants.variant_json import parse_metadata, render_metadata
from rocwheel.distributions.zip.dist_info import find_dist_info
from rocwheel.distributions.zip.reader import read_directory, read_member
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_variant_text"]


def read_variant_text(path: Path, label: str) -> str:
    """Return the ``variant.json`` of a wheel whose file name has ``label``, spelled as rocwheel does.

    Raises `InputError` for a wheel without one, and as `parse_metadata` does.
    """
    members = {member.name: member for member in read_directory(path)}
    place = f"{find_dist_info(path, members)}/{load_draft().names.in_wheel}"
    if place not in members:
        found = f"is named as the variant {label!r} and has no {place}"
        raise InputError(path, found, expected="a variant wheel as PEP 825 (a draft) has it")
    data = read_member(members[place])
    return render_metadata(parse_metadata(data, source=f"{path}!{place}", label=label)).decode()
