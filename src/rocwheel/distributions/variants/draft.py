"""The drafts of wheel variants, :pep:`825` and :pep:`850`, as far as they may still change: ``draft.toml``."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from rocwheel.core.decoding import read_table

__all__ = ["Draft", "DraftGrammar", "DraftNames", "DraftProvider", "DraftSchema", "load_draft"]


class DraftSchema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Addresses of JSON schemas: the one that is written, and those that are read."""

    written: str
    readable: tuple[str, ...]


class DraftNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Names of files, and the label of the variant without properties."""

    in_wheel: str
    """In ``.dist-info``."""
    in_index: str
    """With ``{stem}``, what the names of the wheels begin with: normalised name and version."""
    null_label: str


class DraftGrammar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Regular expressions for the whole of a label, namespace, feature and value."""

    label: str
    namespace: str
    feature: str
    value: str

    def has(self, kind: str, text: str) -> bool:
        """Return whether ``text`` is a word of this ``kind``, a field's name."""
        return re.fullmatch(self.shown(kind), text, re.ASCII) is not None

    def shown(self, kind: str) -> str:
        """Return the expression for this ``kind``."""
        return str(getattr(self, kind))


class DraftProvider(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Who says which AMD GPUs a machine has: a plugin for installers, and what its properties are called."""

    namespace: str
    feature: str
    requires: tuple[str, ...]
    plugin_api: str


class Draft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it."""

    drafts: tuple[str, ...]
    schema: DraftSchema
    names: DraftNames
    grammar: DraftGrammar
    provider: DraftProvider


@cache
def load_draft() -> Draft:
    """Return the content of ``draft.toml``."""
    return read_table("rocwheel.distributions.variants", "draft.toml", Draft)
