"""Which wheel variants (:pep:`825`, a draft) of an index a mirror takes: those that serve the GPUs that it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.workers import convert_all
from rocwheel.distributions.index_reading.source import read_text
from rocwheel.distributions.variants.draft import load_draft
from rocwheel.distributions.variants.index_file import index_file_name
from rocwheel.distributions.variants.variant_json import parse_variants
from rocwheel.stores.urls import shown_url

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocwheel.distributions.index_reading.source import ProjectListing
    from rocwheel.distributions.index_reading.trust import ListedFile
    from rocwheel.distributions.variants.variant_json import Properties

__all__ = ["choose_variants"]


def choose_variants(
    listing: ProjectListing, files: Sequence[ListedFile], serves: Callable[[str], bool]
) -> tuple[ListedFile, ...]:
    """Return those of a project's files that are no variants, or variants for one of the GPUs, or for no GPU.

    ``serves`` says of a target whether it is wanted. Raises `InputError` for variants that the list of the index
    doesn't have, and for a list that can't be read; `ProblemsError` for several.
    """
    names = dict.fromkeys(index_file_name(file.filename) for file in files if file.label)
    known = dict(convert_all(listing.project, lambda name: (name, _read(listing, name)), names))
    judged = convert_all(listing.project, lambda file: (file, _is_wanted(file, known, serves)), files)
    return tuple(file for file, is_wanted in judged if is_wanted)


def _read(listing: ProjectListing, name: str) -> dict[str, Properties]:
    url = listing.variants.get(name)
    if url is None:
        found = f"has wheel variants, and its page doesn't list {name}"
        raise InputError(listing.project, found, remedy="Ask who publishes it, or leave out --variants.")
    return parse_variants(read_text(url), source=shown_url(url))[1]


def _properties(file: ListedFile, known: dict[str, dict[str, Properties]]) -> Properties:
    variants = known[index_file_name(file.filename)]
    if file.label not in variants:
        found = f"is a wheel variant that {index_file_name(file.filename)} doesn't list"
        expected = f"one of {', '.join(map(quoted, sorted(variants)))}"
        raise InputError(file.filename, found, expected=expected, remedy="Ask who publishes it.")
    return variants[file.label]


def _is_wanted(file: ListedFile, known: dict[str, dict[str, Properties]], serves: Callable[[str], bool]) -> bool:
    if not file.label:
        return True
    provider = load_draft().provider
    values = _properties(file, known).get(provider.namespace, {}).get(provider.feature, ())
    return not values or any(map(serves, values))
