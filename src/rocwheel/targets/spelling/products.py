"""GPUs by the names that they are sold under, in place of their targets: ``MI300X``, ``"RX 7900 XTX"``."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING

from rocwheel.targets.catalog.catalog import load_catalog
from rocwheel.targets.catalog.families import is_target
from rocwheel.targets.errors import AmbiguousProductError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["join_products", "product_words", "target_of_product"]

_BRANDS = re.compile(r"^((amd|radeon|instinct|ryzen)+)|(accelerator|igpu|graphics)$")
"""What people leave out at both ends of a name."""
_LINES = re.compile(r"^(rx|pro)")
"""What they leave out too, where the rest says which GPU is meant."""
_LEADING = re.compile(r"amd|radeon|instinct|ryzen|ai|max\+?|[3579]|hx|rx|pro", re.IGNORECASE)
_MODEL = re.compile(r"xtx?|gre|[msx]", re.IGNORECASE)
_LIKE_A_TARGET = re.compile(r"gfx|.*@", re.IGNORECASE)
_ENDING = re.compile(r"[a-z]+")
_MOST_WORDS = 8


def target_of_product(name: str, *, source: str = "GPU target") -> str | None:
    """Return the target of a product, followed by the features that follow its name; none for other text.

    Case, spaces, dashes and the maker's words don't matter. Letters may lack at the end (``MI300``) as long as all
    products that fit have one target. Raises `AmbiguousProductError`, led by ``source``, when they have several.
    """
    text, colon, features = name.partition(":")
    found = _find(text)
    targets = dict.fromkeys(found.values())
    if len(targets) > 1:
        raise AmbiguousProductError(text, found, source=source)
    return next(iter(targets)) + colon + features if targets else None


def join_products(parts: Sequence[Sequence[str]], known: Callable[[str], bool]) -> list[str]:
    """Return the words of all parts, with those that together name a product, such as ``RX 7900 XTX``, as one.

    Words of one part that follow one another and mean nothing are one name, too, so that messages quote all of it.
    ``known`` says which words have a meaning of their own.
    """
    joined: list[str] = []
    rest = [(word, number) for number, part in enumerate(parts) for word in part]
    while rest:
        words = [word for word, _ in rest]
        size = 1 if known(words[0]) else _product_size(words) or max(_led(words), _unknown_size(rest, known))
        joined.append(" ".join(words[:size]))
        del rest[:size]
    return joined


def _product_size(words: Sequence[str]) -> int:
    """Return how many words at the beginning are the longest name of a product; 0 for none."""
    sizes = range(min(_MOST_WORDS, len(words)), 0, -1)
    return next((size for size in sizes if _is_name(words[:size])), 0)


def _unknown_size(words: Sequence[tuple[str, int]], known: Callable[[str], bool]) -> int:
    """Return how many words at the beginning are of one part and mean nothing. What looks like a target is alone."""
    first = words[0][1]

    def belongs(at: int) -> bool:
        word, part = words[at]
        following = [text for text, _ in words[at:]]
        return part == first and not (known(word) or _LIKE_A_TARGET.match(word) or _product_size(following))

    return 1 + sum(1 for _ in takewhile(belongs, range(1, len(words)))) if belongs(0) else 1


def _led(words: Sequence[str]) -> int:
    """Return how many words are of one name, though no product has it: the maker's, what they lead, and an ending."""
    leading = sum(1 for _ in takewhile(_LEADING.fullmatch, words))
    if not leading or leading == len(words) or is_target(words[leading]):
        return leading or 1
    return leading + 1 + sum(1 for _ in takewhile(_MODEL.fullmatch, words[leading + 1 :]))


def _is_name(words: Sequence[str]) -> bool:
    *before, last = words
    return not any(":" in word for word in before) and bool(_find(" ".join([*before, last.partition(":")[0]])))


def product_words() -> list[str]:
    """Return the names of all products as one word each, without the maker's: ``MI300X``, ``RX-7900-XTX``."""
    names = (re.sub(r"^(AMD |Radeon |Instinct )+| Accelerator$", "", name) for name in _products())
    return [re.sub(r"\s+", "-", name) for name in names]


@lru_cache(maxsize=1)
def _products() -> Mapping[str, str]:
    """Return the target of each product by its name."""
    return {name: row.name for row in load_catalog().targets for name in row.products}


@lru_cache(maxsize=1)
def _keys() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return what the names of products are compared by, with and without their lines."""
    keys = {name: _squeezed(name) for name in _products()}
    return keys, {name: _LINES.sub("", key) for name, key in keys.items()}


@lru_cache(maxsize=256)
def _find(text: str) -> Mapping[str, str]:
    """Return the products that a text may mean: of its very name, else without its line, else with a longer ending."""
    wanted = _squeezed(text)
    if not re.search(r"\d|vii", wanted):
        return {}
    keys, short = _keys()
    ways: Iterable[list[str]] = (
        [name for name, key in keys.items() if key == wanted],
        [name for name, key in short.items() if key == wanted],
        [name for name, key in keys.items() if _begins(key, wanted)],
        [name for name, key in short.items() if _begins(key, wanted)],
    )
    names = next((way for way in ways if way), [])
    return {name: _products()[name] for name in names}


def _begins(key: str, wanted: str) -> bool:
    """Return whether letters alone are missing at the end."""
    return len(wanted) > 2 and key.startswith(wanted) and bool(_ENDING.fullmatch(key[len(wanted) :]))


def _squeezed(text: str) -> str:
    return _BRANDS.sub("", re.sub(r"[\W_]+", "", text.lower()))
