"""Reads and writes ``rocm_targets.json`` in ``.dist-info``, which lists the GPU targets for which a package has code.

``{"schema": "rocwheel.rocm-targets/1", "rocm_targets": ["gfx906", "gfx90a:xnack+"], "coherence": {...}}``; the optional
``coherence`` lists the packages that were compared at build time, and the targets that all of them serve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import parse_target_id
from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.targets.target_set import id_sort_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.code_objects import TargetId

DECLARATION_NAME = "rocm_targets.json"
_SCHEMA = "rocwheel.rocm-targets/1"


class RecordedCoherence(msgspec.Struct, frozen=True):
    """The result of a coherence check at build time."""

    packages: tuple[str, ...]
    common: tuple[str, ...]
    gaps: tuple[str, ...] = ()


class Declaration(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of ``rocm_targets.json``."""

    schema: str
    rocm_targets: tuple[str, ...]
    coherence: RecordedCoherence | None = None

    @property
    def targets(self) -> tuple[TargetId, ...]:
        """The declared target IDs, including those from newer compilers; raises `InputError` for a malformed ID."""
        return tuple(parse_target_id(text, source=DECLARATION_NAME) for text in self.rocm_targets)


def encode_declaration(targets: Iterable[TargetId], coherence: RecordedCoherence | None = None) -> bytes:
    """Return the file for a package with code for ``targets``, in canonical order and without duplicates."""
    words = tuple(str(target) for target in sorted(set(targets), key=id_sort_key))
    document = Declaration(_SCHEMA, words, coherence)
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def decode_declaration(data: bytes, *, source: str) -> Declaration:
    """Read the file; raise `InputError` from ``source`` if it is malformed or has a different format version."""
    try:
        document = decode_json(data, Declaration)
    except msgspec.DecodeError as e:
        raise InputError(source, f"is malformed ({e})", expected=_SCHEMA) from e
    if document.schema != _SCHEMA:
        raise InputError(source, f"has the schema {quoted(document.schema)}", expected=_SCHEMA)
    return document
