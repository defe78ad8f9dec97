"""Sets of GPU targets: one grammar for target ids, generic processors, families, policies and this machine's GPUs.

The words of a set are separated by ``;``, ``,`` or white space, may be in quotes and brackets, and may be led by the
setting that they were given to, ``--offload-arch=`` or ``-DGPU_TARGETS=``:

* a target id, ``gfx90a:xnack+``, a generic processor, ``gfx9-4-generic``, or SPIR-V, ``amdgcnspirv``;
* a family, ``gfx94X-dcgpu``;
* a product, ``MI300X`` or ``RX 7900 XTX``, whose spaces separate no words;
* ``official@7.1``, ``unofficial@7.1``, ``supported@7.1`` (both): what Gentoo's eclass has for a ROCm version;
* ``amd@7.1``: what AMD's compatibility matrix lists for it;
* ``extended@7.1``: the official ones, and those that run code of these under their own name;
* ``list@jax``: what a packager builds for;
* ``all``: every specific processor;
* ``native``: the GPUs of this machine.

Features after any of these, ``native:xnack+``, are those of all of its targets. Case doesn't matter.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.core.workers import convert_all
from rocwheel.targets.catalog.catalog import SPIRV, load_catalog, sort_key
from rocwheel.targets.catalog.families import is_family, is_target, targets_of
from rocwheel.targets.errors import ConflictError, EmptySetError, IllegalFeatureError, UnknownTargetError
from rocwheel.targets.spelling.policies import known_policies, policy_targets
from rocwheel.targets.spelling.products import join_products, product_words, target_of_product

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = [
    "TargetSet",
    "id_sort_key",
    "known_words",
    "parse_known_target",
    "parse_target_set",
    "strip_setting",
    "target_words",
]

GPU_FIELD = "X-ROCm-GPU-Architecture"
"""The control field by which a Debian package names its GPUs, separated by spaces (Debian's pkg-rocm-tools)."""

_NATIVE = "native"
"""The word that stands for the GPUs of this machine."""

_SEPARATORS = re.compile(r"[;,\s\"'\[\]]+")
_BETWEEN_NAMES = re.compile(r"[;,\n\"'\[\]]+")
"""The separators that are in the name of no product."""
_LABELS = frozenset(
    {
        *("build", "export", f"{GPU_FIELD}:", "%rocm_gpu_list_default"),
        *("rocmPackages.clr.override", "{", "localGpuTargets", "=", "}"),
        "w/",
    }
)
"""Words around the targets in lines for Bazel, Debian, RPM and Nix, and in ``Ryzen 7 250 w/ Radeon 780M``."""

_FILE_NAME_FEATURE = re.compile(r"-(?=(sramecc|xnack)[+-])")
"""The dash before a feature in the names of kernel files, in place of a colon."""

_NAME = re.compile(r"gfx[\w -]*|(?!gfx)[\w +.()-]+")
"""What may be the name of a processor, family or product; for anything else it is said what is wrong in it."""

_MOST_WORDS = 1000
"""There are about a hundred targets, and each has a few settings of features."""

_SETTING = re.compile(
    r"(--offload-arch|(--|)amdgpu[-_]target|--rocm_amdgpu_targets|"
    r"(-D|--(repo|action)_env=|)(CMAKE_HIP_ARCHITECTURES|(AMD)?GPU_TARGETS|TF_ROCM_AMDGPU_TARGETS|PYTORCH_ROCM_ARCH|"
    r"ROCM_TARGET_ARCH_FIXED)"
    r"(:[A-Z]+)?)="
)
"""The settings of clang, older compilers, Spack, JAX, CMake, Bazel and shells that take targets."""


class TargetSet(msgspec.Struct, frozen=True):
    """Target ids in canonical order, each once. Use `parse_target_set` or `of`; the constructor checks nothing."""

    ids: tuple[TargetId, ...] = ()

    @classmethod
    def of(cls, ids: Iterable[TargetId], *, source: str = "GPU targets") -> TargetSet:
        """Return the canonical set of ``ids``.

        Raises `ConflictError` when the ids of one processor name different features.
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
        """The target ids as text."""
        return tuple(map(str, self.ids))

    @property
    def processors(self) -> tuple[str, ...]:
        """The processors without features, each once."""
        return tuple(dict.fromkeys(target.processor for target in self.ids))


def id_sort_key(target: TargetId) -> tuple[tuple[int, int, int, str], str]:
    """Return the key that orders target ids: the processor's number, then the text, so that ``+`` precedes ``-``."""
    return sort_key(target.processor), str(target)


def parse_known_target(text: str, *, source: str = "GPU target") -> TargetId:
    """Parse a target id whose processor the catalogue knows (or SPIR-V's) and has each named feature.

    Raises `UnknownTargetError`, `IllegalFeatureError`, or the `InputError` of malformed text, led by ``source``.
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
    """Parse words of the grammar above into a set; ``native`` is called to expand the word of that name.

    Raises `EmptySetError` for an empty set when ``required``, `ConflictError` for differing features, `InputError` for
    more than 1000 words, and the errors of unknown or illegal words, several of them as one `ProblemsError`.
    """
    parts = target_words(_bounded([words] if isinstance(words, str) else words, source))
    groups = convert_all(source, partial(_expand_word, source=source, native=native), parts)
    names = dict.fromkeys(name for group in groups for name in group)
    ids = convert_all(source, partial(parse_known_target, source=source), names)
    if required and not ids:
        raise EmptySetError(source=source)
    return TargetSet.of(ids, source=source)


def _bounded(texts: Iterable[str], source: str) -> list[str]:
    """Return the texts; raise `InputError` for more words than anybody means: each unknown one is compared with all."""
    kept = list(texts)
    number = sum(len(_split_words(text)) for text in kept)
    if number > _MOST_WORDS:
        raise InputError(source, f"{number} words for GPU targets", expected=f"at most {_MOST_WORDS}")
    return kept


def target_words(texts: Iterable[str]) -> list[str]:
    """Return the words of texts in any spelling, each of which stands for targets, a product's words as one."""
    names = (name for text in texts for name in _BETWEEN_NAMES.split(text))
    return join_products([_split_words(name) for name in names], _has_meaning)


def _has_meaning(word: str) -> bool:
    name = word.partition(":")[0].lower()
    return name in _words_by_lower_case() or "@" in name


def strip_setting(text: str) -> str:
    """Return the targets in ``-DGPU_TARGETS=gfx906`` or another tool's setting; other text unchanged."""
    return text[match.end() :] if (match := _SETTING.match(text)) else text


def _split_words(text: str) -> list[str]:
    """Split text in any spelling into its words, without separators and settings."""
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
        raise UnknownTargetError(name, known, source=source, what="GPU target, family, product or policy")
    return [word]


def _targets_of_name(name: str, *, source: str, native: Callable[[], Sequence[str]] | None) -> Sequence[str] | None:
    """Return the targets that a word without features stands for, None when it can only be a target itself."""
    if name == _NATIVE:
        if native is None:
            found = "'native' means the GPUs of this machine, but they are not looked for here"
            remedy = "'rocwheel targets detect' prints them."
            raise InputError(source, found, expected="the targets by name", remedy=remedy)
        return native()
    if name == "all":
        return [target.name for target in load_catalog().targets]
    if "@" in name:
        return policy_targets(name, source=source)
    return targets_of(name) if is_family(name) else None


@lru_cache(maxsize=1)
def _words_by_lower_case() -> Mapping[str, str]:
    return {word.lower(): word for word in (*known_words(), _NATIVE)}


def known_words() -> list[str]:
    """Return every word that stands for targets, apart from ids with features and this machine's ``native``."""
    catalog = load_catalog()
    return [*catalog.processors, *catalog.family_targets, *known_policies(), SPIRV, "all"]
