"""Reads and writes ``variant.json`` and an index's variants files (drafts :pep:`825` and :pep:`850`)."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.core.decoding import decode_json, read_table
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, quoted
from rocwheel.core.workers import raise_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class DraftSchema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The URLs of JSON schemas: the schema to write, and the schemas that can be read."""

    written: str
    readable: tuple[str, ...]


class DraftNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """File names, and the label of the variant without properties."""

    in_wheel: str
    """The file name in ``.dist-info``."""
    in_index: str
    """The file name in an index. ``{stem}`` is the beginning of the wheel names: the normalized name and version."""
    null_label: str


class DraftGrammar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Regular expressions that match a complete label, namespace, feature, or value."""

    label: str
    namespace: str
    feature: str
    value: str

    def has(self, kind: str, text: str) -> bool:
        """Return whether ``text`` is a valid name of this ``kind``, such as ``label``."""
        return re.fullmatch(self.shown(kind), text, re.ASCII) is not None

    def shown(self, kind: str) -> str:
        """Return the regular expression for this ``kind``."""
        return str(getattr(self, kind))


class DraftProvider(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The installer plug-in that finds a machine's AMD GPUs, and the names of its properties."""

    namespace: str
    feature: str
    requires: tuple[str, ...]
    plugin_api: str


class Draft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of ``draft.toml``."""

    drafts: tuple[str, ...]
    schema: DraftSchema
    names: DraftNames
    grammar: DraftGrammar
    provider: DraftProvider


@cache
def load_draft() -> Draft:
    """Return the content of ``draft.toml``."""
    return read_table("rocwheel.wheels", "draft.toml", Draft)


def drafts() -> str:
    """Return the names of the drafts that the variants follow, for messages."""
    return f"a draft: {', '.join(load_draft().drafts)}"


Properties = dict[str, dict[str, tuple[str, ...]]]
"""Values, keyed by namespace and feature; empty for the null variant."""

_LIMIT = 1 << 20


_ProviderField = bool | str | tuple[str, ...] | dict[str, tuple[str, ...]]


class _Priorities(msgspec.Struct, frozen=True, omit_defaults=True):
    namespace: tuple[str, ...]
    feature: dict[str, tuple[str, ...]] = {}
    property: dict[str, dict[str, tuple[str, ...]]] = {}


class _Document(msgspec.Struct, frozen=True, rename="kebab"):
    """The file, with the fields that the drafts define."""

    default_priorities: _Priorities
    variants: dict[str, Properties]
    providers: dict[str, dict[str, _ProviderField]] = {}
    schema: str = msgspec.field(default="", name="$schema")


class VariantMetadata(msgspec.Struct, frozen=True):
    """A variant wheel's metadata. Use `parse_metadata`; the constructor doesn't check anything."""

    label: str
    properties: Properties
    common: dict[str, Any]
    """All other fields that the drafts define. They must be identical in all wheels of a version."""

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
    """Return the metadata for a wheel for AMD GPUs; ``values`` contains its targets and is empty for the null variant.

    ``known`` contains the targets of all variants, with preferred targets first. Installers that don't run a plugin
    compare the wheels' targets with these targets. Raises `InputError` for a name that the drafts' grammar doesn't
    allow, such as ``gfx90a:xnack+``, or `ProblemsError` for several such names.
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
    """Return the text of ``variant.json``. Equal metadata produces the same output."""
    return render_variants(metadata.common, {metadata.label: metadata.properties})


def render_variants(common: Mapping[str, Any], variants: Mapping[str, Properties]) -> bytes:
    """Return a variants file: the common fields with sorted keys, then the variants with the null variant last."""
    null = load_draft().names.null_label
    labels = sorted(variants, key=lambda label: (label == null, label))
    document = {key: common[key] for key in sorted(common)}
    document["variants"] = {label: variants[label] for label in labels}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def parse_metadata(data: bytes, *, source: str, label: str) -> VariantMetadata:
    """Parse ``variant.json`` from a wheel with ``label`` in its file name.

    Raises the same errors as `parse_variants`, and `InputError` if the label differs from the file name.
    """
    document = _decode(data, source)
    problems = list(_find_faults(source, document))
    if tuple(document.variants) != (label,):
        found = f"describes {', '.join(map(quoted, document.variants)) or 'no variant'}"
        problems.append(InputError(source, found, expected=f"only {quoted(label)}, as in the file name"))
    raise_all(source, problems)
    return VariantMetadata(label, document.variants[label], _common_of(document))


def parse_variants(data: bytes, *, source: str) -> tuple[dict[str, Any], dict[str, Properties]]:
    """Parse a variants file. Return the fields that all variants share, and the properties of each label.

    Raises `InputError` about ``source`` for other text, an unknown schema, or names that violate the grammar, or
    `ProblemsError` for several problems.
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
        raise InputError(
            source, f"is malformed ({e})", expected="variant metadata in the format of PEP 825 (a draft)"
        ) from e


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
        found = f"has properties of {quoted(namespace)}, which default-priorities doesn't list"
        yield InputError(source, found, expected="each namespace in default-priorities")
    null = load_draft().names.null_label
    for label, properties in document.variants.items():
        if bool(properties) == (label == null):
            found = f"has {'properties' if properties else 'no properties'} for {quoted(label)}"
            yield InputError(
                source, found, expected=f"no properties for {null!r}, and at least one for every other label"
            )
        for namespace, features in properties.items():
            if not features or not all(features.values()):
                yield InputError(source, f"has no value for {quoted(namespace)}", expected="at least one")


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


def read_wheel_text(data: bytes | None, *, label: str, wheel: str, dist_info: str) -> VariantMetadata | None:
    """Return the ``variant.json`` of a wheel with ``label`` in its file name, or `None` for a plain wheel.

    ``data`` is the file's text. Raises `InputError` for a label without the file, or for the file without a label.
    Installers with variant support would treat such a wheel as a wheel for every machine. Raises the same errors as
    `parse_metadata`.
    """
    place = f"{dist_info}/{load_draft().names.in_wheel}"
    if data is None and not label:
        return None
    if data is None:
        found = f"has the variant label {quoted(label)} in its name, but no {place}"
        raise InputError(wheel, found, expected="a variant wheel in the format of PEP 825 (a draft)")
    if not label:
        expected = "NAME-VERSION-PYTHON-ABI-PLATFORM-LABEL.whl"
        found = f"has {place}, as variant wheels do, but no label in its file name"
        raise InputError(wheel, found, expected=expected, remedy="Restore the file's original name.")
    return parse_metadata(data, source=f"{wheel}!{place}", label=label)


def index_file_name(wheel_name: str) -> str:
    """Return the name of the index file for a wheel's version; ``wheel_name`` is the wheel's file name."""
    return load_draft().names.in_index.format(stem="-".join(wheel_name.split("-")[:2]))


def is_index_file_name(name: str) -> bool:
    """Return whether a file next to a project's pages is named like an index file."""
    before, after = load_draft().names.in_index.split("{stem}")
    return name.startswith(before) and name.endswith(after) and name.count("-") == after.count("-") + 1


def merge_index_files(place: str, published: bytes, new: bytes) -> bytes:
    """Return the file at ``place`` with additional variants. Its providers don't change.

    Raises `InputError` if the published file can't be parsed or if variants contradict the published variants, or
    `ProblemsError` for several problems.
    """
    common, variants = parse_variants(published, source=place)
    added_common, added = parse_variants(new, source="the new variant wheels")
    namespace = load_draft().provider.namespace
    problems = []
    if _without(common, namespace) != _without(added_common, namespace):
        found = "differs from the new variant wheels in priorities or providers"
        problems.append(InputError(place, found, expected="the same values in all wheels of a version"))
    for label, properties in added.items():
        if variants.get(label, properties) != properties:
            found = f"differs from the new variant wheel in the properties for the label {quoted(label)}"
            problems.append(InputError(place, found, expected="the same properties for the same label"))
    raise_all(place, problems)
    return render_variants(common, {**variants, **added})


def _without(common: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    providers = {name: one for name, one in common.get("providers", {}).items() if name != namespace}
    return {**common, "providers": providers}


def find_contradictions(wheels: Mapping[str, VariantMetadata]) -> Iterator[InputError]:
    """Yield the contradictions between the wheels of one version, which prevent an index from listing them together.

    ``wheels`` is keyed by file name.

    The draft lets tools merge the fields that differ, or reject them. If lists of targets were merged, the result would
    have an order that no wheel has.
    """
    first_name, first = next(iter(wheels.items()))
    by_label: dict[str, tuple[str, Properties]] = {}
    for name, metadata in wheels.items():
        if metadata.common != first.common:
            one, other = metadata.common, first.common
            differing = " and ".join(sorted(key for key in {*one, *other} if one.get(key) != other.get(key)))
            found = f"its variant.json differs in {differing} from the file in {first_name}"
            yield InputError(name, found, expected="the same values in all wheels of a version")
        known_name, properties = by_label.setdefault(metadata.label, (name, metadata.properties))
        if properties != metadata.properties:
            found = f"differs in properties from {known_name}, which has the same label {quoted(metadata.label)}"
            yield InputError(name, found, expected="the same properties for the same label")


def render_index_file(wheels: Mapping[str, VariantMetadata], machine: Sequence[str] | None = None) -> bytes:
    """Return the index file for wheels that don't contradict each other.

    ``machine`` contains the targets that the index is for, with preferred targets first. Installers then choose a wheel
    for one of these targets without detecting the machine's GPUs. Otherwise, the index specifies the plugin that
    detects GPUs.
    """
    common = dict(next(iter(wheels.values())).common)
    provider = load_draft().provider
    if provider.namespace in common.get("providers", {}):
        common["providers"] = {**common["providers"], provider.namespace: _make_provider(machine)}
    return render_variants(common, {metadata.label: metadata.properties for metadata in wheels.values()})


def _make_provider(machine: Sequence[str] | None) -> dict[str, Any]:
    provider = load_draft().provider
    if machine is None:
        return {"requires": list(provider.requires), "plugin-api": provider.plugin_api}
    return {"static-properties": {provider.feature: list(machine)}, "feature-order": [provider.feature]}
