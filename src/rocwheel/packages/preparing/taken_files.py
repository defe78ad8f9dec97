"""Files that a split takes from host packages, as device packages are laid over them, and puts back changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import GENERIC, FileKind
from rocwheel.artifacts.sdk_files import SPLIT_FLAG
from rocwheel.core.errors import InputError
from rocwheel.distributions.content.content import FileContent
from rocwheel.distributions.content.digest import digest_content
from rocwheel.packages.layout.selection import take_entries
from rocwheel.packages.plan import PlanWarning
from rocwheel.packages.preparing.prepared_catalog import catalog_of
from rocwheel.targets.catalog.families import is_family

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rocwheel.artifacts.catalog import Catalog, Entry
    from rocwheel.artifacts.sdk_files import SdkManifest
    from rocwheel.packages.recipe.recipe import Recipe

__all__ = ["by_path", "replace_files", "require_neutral", "taken_files", "warn_of_code"]

_OPTION = "--split-device"


def require_neutral(catalog: Catalog) -> None:
    """Raise `InputError` for a catalogue of target families, whose files for all GPUs differ."""
    families = sorted({name.target for name in catalog.artifacts if is_family(name.target)})
    if families:
        raise InputError(
            _OPTION,
            f"{catalog.root} has artifacts for families, such as {families[0]}",
            expected="artifacts for all GPUs, and for single targets",
            remedy="Unite those of the families first: rocwheel artifacts merge.",
        )


def taken_files(catalog: Catalog, recipe: Recipe) -> list[Entry]:
    """Return the files for all GPUs of those packages that device packages lie over."""
    overlaid = {package.overlay for package in recipe.packages.values() if package.overlay}
    takes = [take for key in sorted(overlaid) for take in recipe.packages[key].take]
    found: list[Entry] = []
    for name in catalog.artifacts:
        if name.target == GENERIC:
            tree = {entry.path: entry for entry in catalog.entries if entry.artifact == name}
            found += [entry for entry in take_entries(tree, takes).values() if entry.kind is FileKind.FILE]
    return sorted(found, key=lambda entry: (entry.path, entry.artifact))


def by_path(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return the first of the sorted ``entries`` at each path."""
    found: dict[str, Entry] = {}
    for entry in entries:
        found.setdefault(entry.path, entry)
    return found


def replace_files(catalog: Catalog, taken: Iterable[Entry], changed: Collection[str], new: Iterable[Entry]) -> Catalog:
    """Return the catalogue with ``new`` entries in the place of those of ``taken`` whose paths are ``changed``.

    Equal copies of these in other artifacts go, too; other files at their paths stay, and are reported when planning.
    """
    files = by_path(taken)
    entries = [entry for entry in taken if entry.path in changed]
    gone = {entry for entry in entries if entry == files[entry.path] or _are_equal(entry, files[entry.path])}
    kept = (entry for entry in catalog.entries if entry not in gone)
    return catalog_of(catalog, (*kept, *new), _flagged(catalog.manifest))


def warn_of_code(remarks: Mapping[str, str]) -> tuple[PlanWarning, ...]:
    """Return a warning for each file that keeps its device code, given by path with the reason."""
    return tuple(
        PlanWarning(
            "device-code-stays", path, f"keeps its device code for all GPUs: {why}", "Nothing needs to be done."
        )
        for path, why in remarks.items()
    )


def _are_equal(one: Entry, other: Entry) -> bool:
    contents = [FileContent(entry.source) for entry in (one, other) if entry.source]
    return len({digest_content(content) for content in contents}) == 1


def _flagged(manifest: SdkManifest | None) -> SdkManifest | None:
    """Return the manifest of an SDK that TheRock's splitter would have split."""
    return manifest and msgspec.structs.replace(manifest, flags={**manifest.flags, SPLIT_FLAG: True})
