"""The table of kernel files, read from ``kernel_files.toml``; every row names its sources."""

from __future__ import annotations

import enum
from functools import cache

import msgspec

from rocwheel.core.decoding import read_table

__all__ = ["Difference", "Family", "KernelTable", "Opener", "Rule", "Shared", "Without", "load_table"]


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    sources: tuple[str, ...]
    """Names of the row's sources, explained in `KernelTable.sources`."""


class Rule(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Files that are for one target, or for a family of them."""

    files: tuple[str, ...]
    """Patterns as the table explains them; the target is that of a placeholder."""
    target: str = ""
    """The target of files whose pattern has no placeholder."""
    fixed: str = ""
    """Why a copy under another target's name would not do; empty where the library looks files up by name alone."""


class Difference(enum.Enum):
    """What a merge does with a file for all GPUs that isn't the same in all shards."""

    REFUSE = "refuse"
    PRIMARY = "primary"
    LINES = "lines"
    MAPS = "maps"


class Shared(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Files of kernel libraries that are for all GPUs."""

    files: tuple[str, ...]
    differs: Difference
    reason: str


class Without(enum.Enum):
    """What a library does where the folder that it opens has no kernels for a GPU, or is absent."""

    FAILS = "fails"
    COMPILES = "compiles"


class Opener(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which folder a library opens for its kernels, and what it looks for there."""

    libraries: tuple[str, ...]
    """File names without version and ending."""
    folders: tuple[str, ...]
    """Patterns, relative to the library's own folder; the first one that exists is opened.

    The last one without a wildcard is where messages say that a folder is absent.
    """
    index: tuple[str, ...] = ()
    """Patterns of the names of files of which one must be there for the processor."""
    merged: tuple[str, ...] = ()
    """Names of files each of which is the index for all processors."""
    code: tuple[str, ...]
    """The endings of files that hold kernels."""
    for_all: tuple[str, ...] = ()
    """Names of files with code that are opened whichever GPU it is."""
    without: Without
    needed: bool
    """Whether the library finds no kernel for any GPU where the folder is absent."""
    everywhere: bool = False
    """Whether it is built for every GPU that a release is for, so that one without kernels has lost them."""


class SelfContained(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Libraries that one might take for openers, and that open no folder: all their kernels are in the file."""

    libraries: tuple[str, ...]


class Family(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A name for several targets at once, as AOTriton's images and their packages have it."""

    targets: tuple[str, ...]
    spelled: tuple[str, ...] = ()
    """What files call it where that isn't its name."""


class KernelTable(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"rules": "rule", "openers": "opener", "families": "family", "self_contained": "self-contained"},
):
    """The whole table, in the order of the file: the first row that fits wins."""

    suffixes: tuple[str, ...]
    sources: dict[str, str]
    rules: tuple[Rule, ...]
    openers: tuple[Opener, ...]
    self_contained: tuple[SelfContained, ...]
    shared: tuple[Shared, ...]
    families: tuple[Family, ...]


@cache
def load_table() -> KernelTable:
    """Return the table that comes with rocwheel."""
    return read_table("rocwheel.targets.kernel_files", "kernel_files.toml", KernelTable)
