"""Wheel variants, as the drafts :pep:`825` and :pep:`850` have them: ``variant.json``, and the lists of an index."""

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
    """Addresses of JSON schemas: the one that is written, and those that are read."""

    written: str
    readable: tuple[str, ...]


class DraftNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Names of files, and the label of the variant without properties."""

    in_wheel: str
    """In ``.dist-info``."""
    in_index: str
    """With ``{stem}``, what the names of the wheels begin with: normalized name and version."""
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
    return read_table("rocwheel.wheels", "draft.toml", Draft)


def drafts() -> str:
    """Return which drafts the variants follow, for messages."""
    return f"a draft: {', '.join(load_draft().drafts)}"


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
    null = load_draft().names.null_label
    for label, properties in document.variants.items():
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


def index_file_name(wheel_name: str) -> str:
    """Return the name of the file for the version that a wheel is of, by the wheel's file name."""
    return load_draft().names.in_index.format(stem="-".join(wheel_name.split("-")[:2]))


def is_index_file_name(name: str) -> bool:
    """Return whether a file beside the pages of a project is called like such a file."""
    before, after = load_draft().names.in_index.split("{stem}")
    return name.startswith(before) and name.endswith(after) and name.count("-") == after.count("-") + 1


def merge_index_files(place: str, published: bytes, new: bytes) -> bytes:
    """Return the file at ``place`` with further variants; who says what a machine has stays as it is there.

    Raises `InputError` for a published file that can't be read, and for variants that contradict the published ones;
    `ProblemsError` for several.
    """
    common, variants = parse_variants(published, source=place)
    added_common, added = parse_variants(new, source="the new variant wheels")
    namespace = load_draft().provider.namespace
    problems = []
    if _without(common, namespace) != _without(added_common, namespace):
        found = "has other priorities or providers than the new variant wheels"
        problems.append(InputError(place, found, expected="the same in all wheels of a version"))
    for label, properties in added.items():
        if variants.get(label, properties) != properties:
            found = f"has other properties for the label {quoted(label)} than the new variant wheel"
            problems.append(InputError(place, found, expected="the same for one label"))
    raise_all(place, problems)
    return render_variants(common, {**variants, **added})


def _without(common: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    providers = {name: one for name, one in common.get("providers", {}).items() if name != namespace}
    return {**common, "providers": providers}


def find_contradictions(wheels: Mapping[str, VariantMetadata]) -> Iterator[InputError]:
    """Yield what the wheels of one version, by file name, don't say alike: no index can list them together.

    The draft lets tools merge what differs beside the variants, and lets them refuse it. Merged lists of targets would
    have an order that no wheel has.
    """
    first_name, first = next(iter(wheels.items()))
    by_label: dict[str, tuple[str, Properties]] = {}
    for name, metadata in wheels.items():
        if metadata.common != first.common:
            one, other = metadata.common, first.common
            differing = " and ".join(sorted(key for key in {*one, *other} if one.get(key) != other.get(key)))
            found = f"its variant.json has other {differing} than that of {first_name}"
            yield InputError(name, found, expected="the same in all wheels of a version")
        known_name, properties = by_label.setdefault(metadata.label, (name, metadata.properties))
        if properties != metadata.properties:
            found = f"has other properties than {known_name}, of the same label {quoted(metadata.label)}"
            yield InputError(name, found, expected="the same for one label")


def render_index_file(wheels: Mapping[str, VariantMetadata], machine: Sequence[str] | None = None) -> bytes:
    """Return the file for wheels that don't contradict one another.

    ``machine`` are the targets that the index is for, the preferred first: installers take the wheel for one of these
    without asking the machine. Without them, the index names the plugin that asks it.
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
