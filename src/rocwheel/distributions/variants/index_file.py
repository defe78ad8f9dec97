"""``NAME-VERSION-variants.json`` of an index (:pep:`825`, a draft): all variants of a version, and who chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.workers import raise_all
from rocwheel.distributions.variants.draft import load_draft
from rocwheel.distributions.variants.variant_json import parse_variants, render_variants

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.distributions.variants.variant_json import Properties, VariantMetadata

__all__ = ["find_contradictions", "index_file_name", "is_index_file_name", "merge_index_files", "render_index_file"]


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
            found = f"its variant.json has other {_differing(metadata.common, first.common)} than that of {first_name}"
            yield InputError(name, found, expected="the same in all wheels of a version")
        known_name, properties = by_label.setdefault(metadata.label, (name, metadata.properties))
        if properties != metadata.properties:
            found = f"has other properties than {known_name}, of the same label {quoted(metadata.label)}"
            yield InputError(name, found, expected="the same for one label")


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    return " and ".join(sorted(key for key in {*one, *other} if one.get(key) != other.get(key)))


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
