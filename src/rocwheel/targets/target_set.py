"""Parses sets of GPU targets: one grammar for target IDs, generic processors, families, policies, and products.

The words of a set are separated by ``;``, ``,``, or whitespace. They may be in quotes and brackets, and may follow a
setting, such as ``--offload-arch=`` or ``-DGPU_TARGETS=``:

* a target ID, ``gfx90a:xnack+``, a generic processor, ``gfx9-4-generic``, or SPIR-V, ``amdgcnspirv``;
* a family, ``gfx94X-dcgpu``, or a short name, ``gfx94X``, of a family ``gfx94X-all``;
* a product, ``MI300X`` or ``RX 7900 XTX``, whose spaces don't separate words;
* ``official@7.1``, ``unofficial@7.1``, ``supported@7.1`` (both): the targets in Gentoo's eclass for a ROCm version;
* ``amd@7.1``: the targets in AMD's compatibility matrix for it;
* ``extended@7.1``: the official targets, and the targets that run their code under their own name;
* ``list@jax``: the targets that a packager builds for;
* ``all``: every specific processor;
* ``native``: the GPUs of this machine.

Features after any of these words, such as ``native:xnack+``, apply to all of its targets. Case doesn't matter.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.core.workers import map_collecting
from rocwheel.targets.catalog import (
    SPIRV,
    is_family,
    is_target,
    load_catalog,
    matrix_for,
    relabeled_agents,
    release_for,
    sort_key,
    targets_of,
)
from rocwheel.targets.errors import (
    AmbiguousProductError,
    ConflictError,
    EmptySetError,
    IllegalFeatureError,
    UnknownTargetError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


def policy_targets(word: str, *, source: str) -> Sequence[str]:
    """Return the targets of a policy whose name includes, after ``@``, a ROCm version or a packager's name.

    Raises `UnknownTargetError` for any other policy or packager. For versions, raises the same errors as `release_for`
    and `matrix_for`.
    """
    policy, _, argument = word.lower().partition("@")
    if policy == "list":
        lists = {packager.name: packager.targets for packager in load_catalog().packagers}
        if argument not in lists:
            remedy = f"The lists are {', '.join(lists)}."
            raise UnknownTargetError(argument, lists, source=source, what="packager's list", remedy=remedy)
        return lists[argument]
    if policy not in _POLICIES:
        raise UnknownTargetError(word, known_policies(), source=source, what="policy")
    return _POLICIES[policy](argument, source)


def known_policies() -> list[str]:
    """Return every policy combined with each packager or release that it accepts."""
    catalog = load_catalog()
    lists = [f"list@{packager.name}" for packager in catalog.packagers]
    rows = {policy: catalog.matrices if policy == "amd" else catalog.releases for policy in _POLICIES}
    return [*lists, *(f"{policy}@{row.since}" for policy, table in rows.items() for row in table)]


def _official(version: str, source: str) -> tuple[str, ...]:
    return release_for(version, source=source).official


def _unofficial(version: str, source: str) -> tuple[str, ...]:
    return release_for(version, source=source).unofficial


def _supported(version: str, source: str) -> tuple[str, ...]:
    return _official(version, source) + _unofficial(version, source)


def _extended(version: str, source: str) -> tuple[str, ...]:
    official = _official(version, source)
    return (*official, *(agent for code in official for agent in relabeled_agents(code)))


def _amd(version: str, source: str) -> tuple[str, ...]:
    return matrix_for(version, source=source).targets


_POLICIES: dict[str, Callable[[str, str], tuple[str, ...]]] = {
    "official": _official,
    "unofficial": _unofficial,
    "supported": _supported,
    "extended": _extended,
    "amd": _amd,
}


_BRANDS = re.compile(r"^((amd|radeon|instinct|ryzen)+)|(accelerator|igpu|graphics|series|mxgpu|[hv]f)$")
"""Parts that people omit at the beginning or end of a name, and parts that drivers add, as in ``MI300X VF``."""
_TRADEMARK = re.compile(r"\((tm|r)\)")
_MEMORY = re.compile(r"[\W_]+\d+ ?gb\W*$", re.IGNORECASE)
_LINES = re.compile(r"^(aipro|rx|pro)")
"""More parts that people omit if the rest identifies the GPU."""
_LEADING = re.compile(r"amd|radeon|instinct|ryzen|ai|max\+?|[3579]|hx|rx|pro", re.IGNORECASE)
_MODEL = re.compile(r"xtx?|gre|l[ep]|[msx]|\d+gb", re.IGNORECASE)
_LIKE_A_TARGET = re.compile(r"gfx|.*@", re.IGNORECASE)
_ENDING = re.compile(r"[a-z]+")
_NUMBER = re.compile(r"\d|vii")
_MOST_PRODUCT_WORDS = 8


def target_of_product(name: str, *, source: str = "GPU target") -> str | None:
    """Return a product's target, with the features after the product's name, or `None` for other text.

    Letter case, spaces, dashes, the vendor's words, and the memory size don't matter. Letters at the end may be missing
    (``MI300``) if all matching products have the same target. Raises `AmbiguousProductError` from ``source`` if the
    matching products have different targets.
    """
    text, colon, features = name.partition(":")
    found = _find(text)
    targets = dict.fromkeys(found.values())
    if len(targets) > 1:
        raise AmbiguousProductError(text, found, source=source)
    return next(iter(targets)) + colon + features if targets else None


def join_products(parts: Sequence[Sequence[str]], known: Callable[[str], bool]) -> list[str]:
    """Return the words of all parts; words that together form a product name, such as ``RX 7900 XTX``, become one word.

    Consecutive unknown words in one part also become one name, so that messages quote the complete name. ``known``
    returns whether a word has a meaning without other words.
    """
    joined: list[str] = []
    rest = [(word, number) for number, part in enumerate(parts) for word in part]
    while rest:
        words = [word for word, _ in rest]
        size = 1 if known(words[0]) else _named_size(rest) or max(_led(words), _unknown_size(rest, known))
        joined.append(" ".join(words[:size]))
        del rest[:size]
    return joined


def _named_size(words: Sequence[tuple[str, int]]) -> int:
    """Return the number of words in a product name at the beginning, even if the catalog doesn't list the model."""
    size = _product_size([word for word, _ in words])
    model = takewhile(lambda pair: pair[1] == words[0][1] and _MODEL.fullmatch(pair[0]), words[size:])
    return size and size + sum(1 for _ in model)


def _product_size(words: Sequence[str]) -> int:
    """Return the number of words in the longest product name at the beginning, or 0."""
    sizes = range(min(_MOST_PRODUCT_WORDS, len(words)), 0, -1)
    return next((size for size in sizes if _is_name(words[:size])), 0)


def _unknown_size(words: Sequence[tuple[str, int]], known: Callable[[str], bool]) -> int:
    """Return the number of unknown words at the beginning of one part; a word that looks like a target is separate."""
    first = words[0][1]

    def belongs(at: int) -> bool:
        word, part = words[at]
        following = [text for text, _ in words[at:]]
        return part == first and not (known(word) or _LIKE_A_TARGET.match(word) or _product_size(following))

    return 1 + sum(1 for _ in takewhile(belongs, range(1, len(words)))) if belongs(0) else 1


def _led(words: Sequence[str]) -> int:
    """Return the number of words in an unknown product name: the vendor's words, the next word, and an ending."""
    leading = sum(1 for _ in takewhile(_LEADING.fullmatch, words))
    if not leading or leading == len(words) or is_target(words[leading]):
        return leading or 1
    return leading + 1 + sum(1 for _ in takewhile(_MODEL.fullmatch, words[leading + 1 :]))


def _is_name(words: Sequence[str]) -> bool:
    *before, last = words
    return not any(":" in word for word in before) and bool(_find(" ".join([*before, last.partition(":")[0]])))


def is_part_of_product(text: str, name: str) -> bool:
    """Return whether text is part of a product name; if it has a number, case, spaces, and dashes don't matter."""
    key = product_key(text)
    return text.lower() in name.lower() or (bool(_NUMBER.search(key)) and key in product_key(name))


def product_words() -> list[str]:
    """Return the names of all products, each as one word without the vendor: ``MI300X``, ``RX-7900-XTX``."""
    names = (re.sub(r"^(AMD |Radeon |Instinct )+| Accelerator$", "", name) for name in _products())
    return [re.sub(r"\s+", "-", name) for name in names]


@lru_cache(maxsize=1)
def _products() -> Mapping[str, str]:
    return {name: row.name for row in load_catalog().targets for name in row.products}


@lru_cache(maxsize=1)
def _keys() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the keys for comparing product names, with and without product lines."""
    keys = {name: product_key(name) for name in _products()}
    return keys, {name: _LINES.sub("", key) for name, key in keys.items()}


@lru_cache(maxsize=256)
def _find(text: str) -> Mapping[str, str]:
    """Return the products that match the text.

    The exact name takes precedence, then a name without the product line, and then a name with a longer ending.
    """
    wanted = product_key(text)
    keys, short = _keys()
    ways: Iterable[list[str]] = (
        [name for name, key in keys.items() if key == wanted],
        [name for name, key in short.items() if key == wanted],
        [name for name, key in keys.items() if _begins(key, wanted)],
        [name for name, key in short.items() if _begins(key, wanted)],
    )
    names = next((way for way in ways if way), [])
    if not names and (plain := _MEMORY.sub("", text)) != text:
        return _find(plain)
    return {name: _products()[name] for name in names}


def _begins(key: str, wanted: str) -> bool:
    """Return whether ``wanted``, a name with a number, is complete except for letters at its end."""
    if len(wanted) < 3 or not _NUMBER.search(wanted):
        return False
    return key.startswith(wanted) and bool(_ENDING.fullmatch(key[len(wanted) :]))


def product_key(text: str) -> str:
    """Return a product name in the form that is used to compare names: ``rx7900xt`` for ``AMD Radeon RX 7900 XT``."""
    return _BRANDS.sub("", re.sub(r"[\W_]+", "", _TRADEMARK.sub("", text.lower())))


GPU_FIELD = "X-ROCm-GPU-Architecture"
"""The control field that lists a Debian package's GPUs, separated by spaces (Debian's pkg-rocm-tools)."""

_NATIVE = "native"
"""The word for this machine's GPUs."""

_SEPARATORS = re.compile(r"[;,\s\"'\[\]]+")
_BETWEEN_NAMES = re.compile(r"[;,\n\"'\[\]]+")
"""The separators that don't occur in product names."""
_LABELS = frozenset(
    {
        *("build", "export", f"{GPU_FIELD}:", "%rocm_gpu_list_default"),
        *("rocmPackages.clr.override", "{", "localGpuTargets", "=", "}"),
        "w/",
    }
)
"""Words that surround the targets in text for Bazel, Debian, RPM, and Nix, and in ``Ryzen 7 250 w/ Radeon 780M``."""

_FILE_NAME_FEATURE = re.compile(r"-(?=(sramecc|xnack)[+-])")
"""The dash that replaces the colon before a feature in the names of kernel files."""

_NAME = re.compile(r"gfx[\w -]*|(?!gfx)[\w +.()-]+")
"""Matches possible names of processors, families, or products.

For other text, the error message shows which part is wrong.
"""

_MOST_WORDS = 1000
"""The maximum number of words. There are about a hundred targets, each with a few feature settings."""

_SETTING = re.compile(
    r"(--offload-arch|(--|)amdgpu[-_]target|--rocm_amdgpu_targets|"
    r"(-D|--(repo|action)_env=|)(CMAKE_HIP_ARCHITECTURES|(AMD)?GPU_TARGETS|TF_ROCM_AMDGPU_TARGETS|PYTORCH_ROCM_ARCH|"
    r"ROCM_TARGET_ARCH_FIXED)"
    r"(:[A-Z]+)?)="
)
"""The settings that accept targets in clang, older compilers, Spack, JAX, CMake, Bazel, and shells."""


class TargetSet(msgspec.Struct, frozen=True):
    """Distinct target IDs in canonical order. Use `parse_target_set` or `of`; the constructor doesn't validate IDs."""

    ids: tuple[TargetId, ...] = ()

    @classmethod
    def of(cls, ids: Iterable[TargetId], *, source: str = "GPU targets") -> TargetSet:
        """Return the canonical set of ``ids``.

        Raises `ConflictError` if IDs for one processor set different features.
        """
        ordered = tuple(sorted(set(ids), key=id_sort_key))
        for one, other in pairwise(ordered):
            if one.processor == other.processor and one.features.keys() != other.features.keys():
                raise ConflictError(str(one), str(other), source=source)
        return cls(ordered)

    def __iter__(self) -> Iterator[TargetId]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def __str__(self) -> str:
        return ";".join(map(str, self.ids))

    @property
    def words(self) -> tuple[str, ...]:
        """The target IDs as text."""
        return tuple(map(str, self.ids))

    @property
    def processors(self) -> tuple[str, ...]:
        """The distinct processors, without features."""
        return tuple(dict.fromkeys(target.processor for target in self.ids))


def id_sort_key(target: TargetId) -> tuple[tuple[int, int, int, str], str]:
    """Return the key that sorts target IDs by processor number, and then by text, so that ``+`` precedes ``-``."""
    return sort_key(target.processor), str(target)


def text_sort_key(target: str) -> tuple[tuple[int, int, int, str], str]:
    """Return a key that sorts target IDs as text in the same order as `id_sort_key`, with other texts among them."""
    return sort_key(target.partition(":")[0]), target


def parse_known_target(text: str, *, source: str = "GPU target") -> TargetId:
    """Parse a target ID whose processor is in the catalog (or SPIR-V) and has each of the ID's features.

    Raises `UnknownTargetError`, `IllegalFeatureError`, or, for malformed text, `InputError`, from ``source``.
    """
    target = parse_target_id(text, source=source)
    allowed = () if target.processor == SPIRV else load_catalog().processor(target.processor, source=source).features
    for feature in target.features:
        if feature not in allowed:
            raise IllegalFeatureError(text, feature, allowed, source=source)
    return target


def parse_target_set(
    words: Iterable[str] | str,
    *,
    source: str = "GPU targets",
    native: Callable[[], Sequence[str]] | None = None,
    required: bool = True,
) -> TargetSet:
    """Parse words in the grammar above into a set; ``native`` is called to expand the word with that name.

    Raises `EmptySetError` for an empty set if ``required``, `ConflictError` for conflicting features, and `InputError`
    for more than 1000 words. Also raises the errors for unknown or illegal words, or a single `ProblemsError` for
    several such words.
    """
    parts = target_words(_bounded([words] if isinstance(words, str) else words, source))
    groups = map_collecting(source, partial(_expand_word, source=source, native=native), parts)
    names = dict.fromkeys(name for group in groups for name in group)
    ids = map_collecting(source, partial(parse_known_target, source=source), names)
    if required and not ids:
        raise EmptySetError(source=source)
    return TargetSet.of(ids, source=source)


def _bounded(texts: Iterable[str], source: str) -> list[str]:
    """Return the texts; raise `InputError` for too many words, because each unknown word is compared with all names."""
    kept = list(texts)
    number = sum(len(_split_words(text)) for text in kept)
    if number > _MOST_WORDS:
        raise InputError(source, f"contains {number} words for GPU targets", expected=f"at most {_MOST_WORDS}")
    return kept


def target_words(texts: Iterable[str]) -> list[str]:
    """Return the words for targets in texts of any supported format; the words of a product name become one word."""
    names = (name for text in texts for name in _BETWEEN_NAMES.split(text))
    return join_products([_split_words(name) for name in names], _has_meaning)


def _has_meaning(word: str) -> bool:
    name = word.partition(":")[0].lower()
    return name in _words_by_lower_case() or "@" in name


def strip_setting(text: str) -> str:
    """Return the targets from ``-DGPU_TARGETS=gfx906`` or another tool's setting, or other text unchanged."""
    return text[match.end() :] if (match := _SETTING.match(text)) else text


def _split_words(text: str) -> list[str]:
    """Split text in any supported format into words, without separators and setting names."""
    words = (strip_setting(word) for word in _SEPARATORS.split(text) if word not in _LABELS)
    return [_FILE_NAME_FEATURE.sub(":", word) for word in words if word]


def _expand_word(word: str, *, source: str, native: Callable[[], Sequence[str]] | None) -> Sequence[str]:
    name, colon, features = word.partition(":")
    features = features.lower()
    name = _words_by_lower_case().get(name.lower(), name)
    targets = _targets_of_name(name, source=source, native=native)
    if targets is not None:
        return [target + colon + features for target in targets]
    if is_target(name) or name == SPIRV:
        return [name + colon + features]
    if product := target_of_product(name + colon + features, source=source):
        return [product]
    if _NAME.fullmatch(name):
        known = [*known_words(), *product_words()]
        raise UnknownTargetError(name, known, source=source, what="GPU target, family, product, or policy")
    return [word]


def _targets_of_name(name: str, *, source: str, native: Callable[[], Sequence[str]] | None) -> Sequence[str] | None:
    """Return the targets for a word without features, or `None` if the word can only be a target ID itself."""
    if name == _NATIVE:
        if native is None:
            found = "'native' means the GPUs of this machine, but GPUs aren't detected here"
            remedy = "To print the targets of this machine, use 'rocwheel targets detect'."
            raise InputError(source, found, expected="the targets by name", remedy=remedy)
        return native()
    if name == "all":
        return [target.name for target in load_catalog().targets]
    if "@" in name:
        return policy_targets(name, source=source)
    return targets_of(name) if is_family(name) else None


@lru_cache(maxsize=1)
def _words_by_lower_case() -> Mapping[str, str]:
    """Return every word, keyed by its lowercase form.

    A family's name without ``-all``, such as ``gfx115X``, is also a word.
    """
    families = {family.name[:-4]: family.name for family in load_catalog().families if family.name.endswith("X-all")}
    words = {**families, **{word: word for word in (*known_words(), _NATIVE)}}
    return {name.lower(): word for name, word in words.items()}


def known_words() -> list[str]:
    """Return every word for targets, except IDs with features and ``native``, which depends on the machine."""
    catalog = load_catalog()
    return [*catalog.processors, *catalog.family_targets, *known_policies(), SPIRV, "all"]


def fold_to_families(targets: TargetSet) -> tuple[str, ...]:
    """Return the fewest words for exactly these targets: the largest complete families, and then single targets.

    A target with features doesn't belong to any family.
    """
    left = {target.processor for target in targets if not target.features}
    names: list[str] = []
    for family in sorted(load_catalog().families, key=lambda row: (-len(row.targets), row.name)):
        if len(family.targets) > 1 and left.issuperset(family.targets):
            names.append(family.name)
            left.difference_update(family.targets)
    singles = (str(target) for target in targets if target.features or target.processor in left)
    return (*names, *singles)


def fold_to_generics(targets: TargetSet) -> TargetSet:
    """Return a set that serves every target, using generic code where a generic processor covers the target.

    Features are preserved if the generic processor has them and all of its members in this set have the same settings.
    """
    folded = {_generic_for(target) for target in targets}
    named: dict[str, set[frozenset[str]]] = {}
    for target in folded:
        named.setdefault(target.processor, set()).add(frozenset(target.features))
    # Code that doesn't set features serves each setting, and one set can't contain both kinds.
    return TargetSet.of(t if len(named[t.processor]) == 1 else TargetId(t.processor) for t in folded)


def _generic_for(target: TargetId) -> TargetId:
    catalog = load_catalog()
    names: Iterable[str] = catalog.generics_of(target.processor)
    for name in names:
        if set(target.features) <= set(catalog.processor(name).features):
            return TargetId(name, **target.features)
    return target
