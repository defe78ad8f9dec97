"""``variant.json`` of a variant wheel (:pep:`825` and :pep:`850`, drafts): what the wheel is for, and who says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, quoted
from rocwheel.core.workers import raise_all
from rocwheel.distributions.variants.draft import load_draft

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "Properties",
    "VariantMetadata",
    "make_metadata",
    "parse_metadata",
    "parse_variants",
    "render_metadata",
    "render_variants",
]

Properties = dict[str, dict[str, tuple[str, ...]]]
"""Values by namespace and feature; empty for the null variant."""

_LIMIT = 1 << 20


_ProviderField = bool | str | tuple[str, ...] | dict[str, tuple[str, ...]]


class _Priorities(msgspec.Struct, frozen=True, omit_defaults=True):
    namespace: tuple[str, ...]
    feature: dict[str, tuple[str, ...]] = {}
    property: dict[str, dict[str, tuple[str, ...]]] = {}


class _Document(msgspec.Struct, frozen=True, rename="kebab"):
    """The file, with what the drafts know of it."""

    default_priorities: _Priorities
    variants: dict[str, Properties]
    providers: dict[str, dict[str, _ProviderField]] = {}
    schema: str = msgspec.field(default="", name="$schema")


class VariantMetadata(msgspec.Struct, frozen=True):
    """What a variant wheel says of itself. Use `parse_metadata`; the constructor checks nothing."""

    label: str
    properties: Properties
    common: dict[str, Any]
    """All else in the file that the drafts know: what the other wheels of the version have to say as well."""

    @property
    def words(self) -> tuple[str, ...]:
        """The properties as text: ``amd :: gfx_arch :: gfx942``."""
        return tuple(
            f"{namespace} :: {feature} :: {value}"
            for namespace, features in self.properties.items()
            for feature, values in features.items()
            for value in values
        )


def make_metadata(label: str, values: Sequence[str], known: Sequence[str]) -> VariantMetadata:
    """Return what a wheel for AMD GPUs says: ``values`` are its targets, none for the null variant.

    ``known`` are the targets of all variants, the preferred first: installers that run no plugin compare with these.
    Raises `InputError` for what the grammar of the drafts has no room for, such as ``gfx90a:xnack+``; `ProblemsError`
    for several.
    """
    draft = load_draft()
    provider = draft.provider
    properties: Properties = {provider.namespace: {provider.feature: tuple(values)}} if values else {}
    document = _Document(
        _Priorities((provider.namespace,)),
        {label: properties},
        {
            provider.namespace: {
                "static-properties": {provider.feature: tuple(known)},
                "feature-order": (provider.feature,),
            }
        },
        draft.schema.written,
    )
    raise_all(f"variant {quoted(label)}", list(_find_faults("wheel variant", document)))
    return VariantMetadata(label, properties, _common_of(document))


def render_metadata(metadata: VariantMetadata) -> bytes:
    """Return the text of ``variant.json``; the same metadata gives the same bytes."""
    return render_variants(metadata.common, {metadata.label: metadata.properties})


def render_variants(common: Mapping[str, Any], variants: Mapping[str, Properties]) -> bytes:
    """Return a file of this form: the common part with its keys in order, then the variants, the null one last."""
    null = load_draft().names.null_label
    labels = sorted(variants, key=lambda label: (label == null, label))
    document = {key: common[key] for key in sorted(common)}
    document["variants"] = {label: variants[label] for label in labels}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def parse_metadata(data: bytes, *, source: str, label: str) -> VariantMetadata:
    """Read ``variant.json`` of the wheel whose file name has ``label``.

    Raises as `parse_variants` does, and for another label than that of the file name.
    """
    document = _decode(data, source)
    problems = list(_find_faults(source, document))
    if tuple(document.variants) != (label,):
        found = f"is about {', '.join(map(quoted, document.variants)) or 'no variant'}"
        problems.append(InputError(source, found, expected=f"{quoted(label)} alone, as in the file name"))
    raise_all(source, problems)
    return VariantMetadata(label, document.variants[label], _common_of(document))


def parse_variants(data: bytes, *, source: str) -> tuple[dict[str, Any], dict[str, Properties]]:
    """Read a file of this form; return what all variants have in common, and the properties of each by label.

    Raises `InputError`, led by ``source``, for another text, a schema that the drafts don't know, and words that break
    their grammar; `ProblemsError` for several of these.
    """
    document = _decode(data, source)
    raise_all(source, list(_find_faults(source, document)))
    return _common_of(document), document.variants


def _decode(data: bytes, source: str) -> _Document:
    if len(data) > _LIMIT:
        raise InputError(source, f"is {count(len(data), 'byte')} long", expected=f"at most {_LIMIT}")
    try:
        return decode_json(data, _Document)
    except msgspec.DecodeError as e:
        raise InputError(source, f"malformed ({e})", expected="variant metadata as PEP 825 (a draft) has it") from e


def _common_of(document: _Document) -> dict[str, Any]:
    whole: dict[str, Any] = msgspec.to_builtins(document)
    return {key: value for key, value in whole.items() if key != "variants"}


def _find_faults(source: str, document: _Document) -> Iterator[InputError]:
    schemas = load_draft().schema.readable
    if document.schema not in schemas:
        yield InputError(source, f"has the schema {quoted(document.schema)}", expected=f"one of {', '.join(schemas)}")
    for kind, word in sorted(set(_words(document))):
        if not load_draft().grammar.has(kind, word):
            expected = f"{load_draft().grammar.shown(kind)} (a draft: {' and '.join(load_draft().drafts)})"
            yield InputError(source, f"{quoted(word)} can't be a {kind}", expected=expected)
    namespaces = {namespace for properties in document.variants.values() for namespace in properties}
    for namespace in sorted(namespaces - set(document.default_priorities.namespace)):
        found = f"has properties of {quoted(namespace)}, which default-priorities doesn't name"
        yield InputError(source, found, expected="each namespace there")
    yield from _find_empty(source, document.variants)


def _find_empty(source: str, variants: Mapping[str, Properties]) -> Iterator[InputError]:
    null = load_draft().names.null_label
    for label, properties in variants.items():
        if bool(properties) == (label == null):
            found = f"gives {quoted(label)} {'properties' if properties else 'no property'}"
            yield InputError(source, found, expected=f"none for {null!r}, and some for every other label")
        for namespace, features in properties.items():
            if not features or not all(features.values()):
                yield InputError(source, f"names no value for {quoted(namespace)}", expected="one or more")


def _words(document: _Document) -> Iterator[tuple[str, str]]:
    for namespace in (*document.default_priorities.namespace, *document.providers):
        yield "namespace", namespace
    for label, properties in document.variants.items():
        yield "label", label
        for namespace, features in properties.items():
            yield "namespace", namespace
            for feature, values in features.items():
                yield "feature", feature
                yield from (("value", value) for value in values)
