"""Determines which code runs on which GPU, under the rules of unmodified and extended runtimes.

An unmodified runtime accepts code for the same processor, or for a generic processor that covers it. Every feature must
match the GPU or be unset. If there is no such code, the runtime compiles SPIR-V. These rules are the same in clang,
comgr, CLR, and ROCr. Extended runtimes, which some distributions ship, also accept code for certain similar processors.
``targets/similar_code.toml`` lists these processors.

Rules that depend on the release, such as whether gfx906 finds gfx9-generic code, are in ``device/selection.py``. These
rules are based on the table ``binary/bundles/runtimes.toml``.

A processor that isn't in the catalog, such as a processor from a newer compiler, matches only itself.
"""

from __future__ import annotations

from enum import Enum
from itertools import product
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import FEATURES, TargetId
from rocwheel.targets.catalog import SPIRV, Generic, find_relabeling, load_catalog, loads_when_patched

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

GENERIC = "generic"
"""The target of artifacts that are identical for all GPUs."""


class Runtime(str, Enum):
    """The runtime whose rules apply when code is loaded."""

    STOCK = "stock"
    EXTENDED = "extended"


class Fit(str, Enum):
    """How well code matches a GPU, from worst to best."""

    NONE = "none"
    SPIRV = "spirv"
    GENERIC = "generic"
    SIMILAR = "similar"
    OPEN = "open"
    EXACT = "exact"

    @property
    def rank(self) -> int:
        """A number that is higher for a better match. 0 means that the code doesn't match."""
        return list(Fit).index(self)


_REASONS = {
    Fit.SPIRV: "SPIR-V, which the runtime compiles for the GPU",
    Fit.GENERIC: "generic code that covers the GPU",
    Fit.SIMILAR: "code for a similar GPU, which only an extended runtime accepts",
    Fit.OPEN: "the same processor, without feature settings",
    Fit.EXACT: "the same processor with the same features",
}
_WORDS = {True: "on", False: "off", None: "unspecified"}


def fit(code: TargetId, agent: TargetId, runtime: Runtime = Runtime.STOCK) -> Fit:
    """Return how well ``code`` matches the GPU ``agent``. A feature that the agent doesn't set may be on or off."""
    if any(setting != agent.features.get(name) for name, setting in code.features.items()):
        return Fit.NONE
    if code.processor == agent.processor:
        return Fit.EXACT if code == agent else Fit.OPEN
    if code.processor in load_catalog().generics_of(agent.processor):
        return Fit.GENERIC
    if runtime is Runtime.EXTENDED and loads_when_patched(code.processor, agent.processor):
        return Fit.SIMILAR
    if code.processor == SPIRV:
        return Fit.SPIRV
    return Fit.NONE


def explain(code: TargetId, agent: TargetId, runtime: Runtime = Runtime.STOCK) -> str:
    """Explain why ``code`` runs on ``agent``, or why it doesn't."""
    how = fit(code, agent, runtime)
    if how is not Fit.NONE:
        return _REASONS[how]
    bound = [
        f"requires {name} {'on' if setting else 'off'}, but it is {_WORDS[agent.features.get(name)]} for the GPU"
        for name, setting in code.features.items()
        if setting != agent.features.get(name)
    ]
    if _processor_suits(code.processor, agent.processor, runtime):
        return ", ".join(bound)
    # Code that needs another setting doesn't run with any runtime, or under any other name.
    return "code for another processor" if bound else _explain_other(code.processor, agent.processor)


def _explain_other(code: str, agent: str) -> str:
    if loads_when_patched(code, agent):
        return _REASONS[Fit.SIMILAR]
    if find_relabeling(code, agent):
        return f"code that the GPU can run, but only under the GPU's own name: device retarget {code}={agent}"
    return "code for another processor"


def _processor_suits(code: str, agent: str, runtime: Runtime) -> bool:
    if code == agent or code in load_catalog().generics_of(agent):
        return True
    return runtime is Runtime.EXTENDED and loads_when_patched(code, agent)


class Choice(msgspec.Struct, frozen=True):
    """The code object that a runtime selects for a GPU."""

    index: int
    """The position among the available code objects, counted from 0."""
    code: TargetId
    fit: Fit
    reason: str


def choose(codes: Sequence[TargetId], agent: TargetId, runtime: Runtime = Runtime.STOCK) -> Choice | None:
    """Return which of ``codes``, in bundle order, is loaded on ``agent``, or `None` if none is loaded.

    An unmodified runtime selects the first code for the processor, regardless of how well its features match, then
    generic code, and then SPIR-V. An extended runtime prefers an exact match, then code that doesn't set features, then
    similar code, generic code, and SPIR-V. Among code that doesn't set all features, it prefers code that sets XNACK,
    and then code that sets SRAMECC.
    """
    fits = [(index, code, fit(code, agent, runtime)) for index, code in enumerate(codes)]
    usable = [(index, code, how) for index, code, how in fits if how is not Fit.NONE]
    if not usable:
        return None
    score = _score_extended if runtime is Runtime.EXTENDED else _score_stock
    index, code, how = max(usable, key=lambda item: (score(item[1], item[2]), -item[0]))
    return Choice(index, code, how, _REASONS[how])


def _score_stock(_code: TargetId, how: Fit) -> int:
    return min(how.rank, Fit.OPEN.rank)


def _score_extended(code: TargetId, how: Fit) -> int:
    return 4 * how.rank + 2 * (code.xnack is not None) + (code.sramecc is not None)


def covers(codes: Iterable[TargetId], wanted: TargetId) -> bool:
    """Return whether ``codes`` together serve all GPUs that code for ``wanted`` serves.

    If no code serves ``wanted`` itself, it is expanded: an unset feature represents both settings, and a generic
    processor represents each member.
    """
    offered = tuple(codes)
    if any(fit(code, wanted) is not Fit.NONE for code in offered):
        return True
    narrower = _settings_of(wanted) or _members_of(wanted)
    return bool(narrower) and all(covers(offered, target) for target in narrower)


def _settings_of(target: TargetId) -> list[TargetId]:
    return [setting for setting in settings_of(target, FEATURES) if setting != target]


def _members_of(target: TargetId) -> list[TargetId]:
    row = load_catalog().processors.get(target.processor)
    members = row.members if isinstance(row, Generic) else ()
    return [TargetId(member, **target.features) for member in members]


def settings_of(target: TargetId, features: Collection[str]) -> list[TargetId]:
    """Return ``target`` with every combination of settings for the ``features`` that it doesn't set.

    Features that its processor doesn't have are ignored. A processor that isn't in the catalog is assumed to have every
    feature.
    """
    row = load_catalog().processors.get(target.processor)
    possible = row.features if row else FEATURES
    names = [name for name in possible if name in features and name not in target.features]
    return [
        TargetId(target.processor, **target.features, **dict(zip(names, settings, strict=True)))
        for settings in product((True, False), repeat=len(names))
    ]
