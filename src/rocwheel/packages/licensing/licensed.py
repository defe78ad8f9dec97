"""What a package holds of which components, under which licenses, and with which texts of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.licenses import canonicalize_license_expression

from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.packages.layout.selection import PrefixEntries
from rocwheel.packages.licensing.component import Component, component_of, is_overlay
from rocwheel.packages.licensing.upstream import upstream_of
from rocwheel.packages.plan import PlannedComponent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.artifacts.sdk_files import SdkManifest
    from rocwheel.packages.recipe.recipe import Recipe

__all__ = ["LicensedFiles", "license_files"]


class LicensedFiles(msgspec.Struct, frozen=True):
    """The components of a package's files, and their license texts."""

    components: tuple[PlannedComponent, ...]
    texts: PrefixEntries
    """By path in the artifacts' prefix."""


def license_files(
    entries: Iterable[Entry], tree: PrefixEntries, recipe: Recipe, manifest: SdkManifest | None = None
) -> LicensedFiles:
    """Return the components that files are of, with those license texts of a prefix that are theirs.

    A text belongs to the component in whose stage folder it stands. The ``manifest`` tells what they were made of.
    """
    artifacts = _artifacts(entries)
    texts = {path: entry for path, entry in _texts(tree, recipe).items() if component_of(entry) in artifacts}
    own: dict[Component, list[str]] = {}
    for path, entry in texts.items():
        own.setdefault(component_of(entry), []).append(path)

    def plan(component: Component, names: set[str]) -> PlannedComponent:
        upstream = upstream_of(component, names, manifest)
        return PlannedComponent(
            component.artifact,
            component.project,
            _license_of(component, recipe.licenses, recipe.license),
            tuple(own.get(component, ())),
            tuple(sorted(names)),
            upstream.version,
            upstream.urls,
        )

    return LicensedFiles(tuple(plan(*one) for one in sorted(artifacts.items())), texts)


def _artifacts(entries: Iterable[Entry]) -> dict[Component, set[str]]:
    """Return the artifacts that files come from, by component."""
    artifacts: dict[Component, set[str]] = {}
    for entry in entries:
        if not is_overlay(entry):
            artifacts.setdefault(component_of(entry), set()).add(str(entry.artifact))
    return artifacts


def _texts(tree: PrefixEntries, recipe: Recipe) -> PrefixEntries:
    if not recipe.license_patterns:
        return {}
    patterns = PathPatterns(recipe.license_patterns)
    return {path: entry for path, entry in tree.items() if entry.source and patterns.matches(path)}


def _license_of(component: Component, table: Mapping[str, str], default: str | None) -> str | None:
    """Return the expression of a component; none where neither the ``table`` nor a ``default`` tells.

    The longest end of the project's folder that the table names counts, then the artifact.
    """
    parts = component.project.split("/")
    ends = ("/".join(parts[place:]) for place in range(len(parts)))
    found = next((table[name] for name in (*ends, component.artifact) if name in table), default)
    return found and canonicalize_license_expression(found)
