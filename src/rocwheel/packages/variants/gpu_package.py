"""One wheel of a package that exists for each GPU: ``rocm-sdk-device-gfx942``, ``rocm-sdk-libraries-gfx94x-dcgpu``."""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.distributions.formats.platforms.tags import lowest_glibc, parse_platforms
from rocwheel.targets.catalog.catalog import load_catalog
from rocwheel.targets.kernel_files.classify import find_family
from rocwheel.targets.kernel_files.table import load_table

__all__ = ["GpuPackage", "WordKind", "classify_word", "split_distribution"]

WordKind = Literal["target", "generic", "family", "shared"]
"""What the end of a name says. ``shared``: files for several targets, beside what each has of its own."""

_BEGIN = "-gfx"


class GpuPackage(msgspec.Struct, frozen=True):
    """A wheel for some GPUs, by its name."""

    base: str
    """The name of the distribution, normalised, without the GPU."""
    word: str
    """The end of its name: a target, ``gfx9-4-generic``, ``gfx94x-dcgpu``, or ``gfx12-0``."""
    version: str
    tags: tuple[str, str, str]
    """For Python, ABI and platform, as in the file name."""
    declared: tuple[str, ...] = ()
    """The processors that it has code for."""
    requires: tuple[str, ...] = ()
    requires_python: str = ""

    @property
    def pin(self) -> str:
        """The requirement of exactly this package."""
        return f"{self.base}-{self.word}=={self.version}"

    @property
    def machine(self) -> tuple[str, ...]:
        """What it has to share with packages that are installed together: Python, ABI, and the systems it is for."""
        return (*self.tags[:2], *sorted({f"{tag.system}-{tag.machine}" for tag in parse_platforms(self.tags[2])}))

    @property
    def age(self) -> tuple[tuple[int, int], str]:
        """What orders platform tags of one machine: the newest runs where all others do."""
        return lowest_glibc(parse_platforms(self.tags[2])) or (0, 0), self.tags[2]

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets of the GPUs that it serves, without features: its own by its name first."""
        catalog = load_catalog()
        kind, word = classify_word(self.word)
        members = {generic.name: generic.members for generic in catalog.generics}
        code = [target for name in self.declared for target in members.get(name, (name,))]
        if kind == "target":
            return tuple(dict.fromkeys((word, *code)))
        if kind == "generic":
            return members[word]
        family = find_family(word)
        named = family.targets if family else catalog.family_targets[word]
        specific = [target for target in named if "-" not in target]
        return tuple(target for target in specific if target in code) or tuple(specific)


def split_distribution(name: str) -> tuple[str, str] | None:
    """Return the name of a distribution without the GPU that ends it, and this GPU; none for other names."""
    base, begin, rest = canonicalize_name(name).rpartition(_BEGIN)
    word = f"gfx{rest}"
    return (base, word) if begin and base and word in _words() else None


def classify_word(word: str) -> tuple[WordKind, str]:
    """Return what the end of a name says, and how the catalogue spells it."""
    return _words()[word]


@cache
def _words() -> dict[str, tuple[WordKind, str]]:
    """Return all ends of names, normalised as names are."""
    catalog = load_catalog()
    generics = {generic.name for generic in catalog.generics}
    found: dict[str, tuple[WordKind, str]] = {}
    found |= {_normalised(family.name): ("shared", family.name) for family in load_table().families}
    found |= {_normalised(name): ("family", name) for name in catalog.family_targets}
    found |= {name: ("generic" if name in generics else "target", name) for name in catalog.processors}
    return found


def _normalised(name: str) -> str:
    return str(canonicalize_name(name))
