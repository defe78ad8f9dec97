"""Defines the pairs of targets whose code may be relabeled from one to the other, as in ``extended`` packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError
from rocwheel.targets.catalog import find_relabeling, relabeled_agents, unnamed_features
from rocwheel.targets.errors import UnknownTargetError
from rocwheel.targets.target_set import parse_known_target, parse_target_set, target_of_product

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class TargetPair(msgspec.Struct, frozen=True):
    """Also offers the code for ``code`` to GPUs with the target ``agent``.

    ``unnamed`` contains the features that runtimes leave out of the target IDs for ``agent``, because these features
    are off there.
    """

    code: TargetId
    agent: TargetId
    unnamed: tuple[str, ...] = ()

    def agent_of(self, target: TargetId) -> TargetId | None:
        """Return the target for a copy of code for ``target``, or `None` if the pair doesn't apply.

        A pair without features applies to all variants of the processor. The copy has the same features, except unnamed
        features. If the code needs an unnamed feature, there is no target.
        """
        if target == self.code:
            return self.agent
        if self.code.features or self.agent.features or target.processor != self.code.processor:
            return None
        if any(target.features.get(name) for name in self.unnamed):
            return None
        named = {name: setting for name, setting in target.features.items() if name not in self.unnamed}
        return TargetId(self.agent.processor, **named)


def extended_pairs(code: TargetId) -> tuple[TargetPair, ...]:
    """Return all pairs that allow code for ``code`` to replace another target's code.

    If the target has features, its pairs apply only to this target, and include its features if runtimes name them.
    """
    pairs = (_pair(TargetId(code.processor), TargetId(agent)) for agent in relabeled_agents(code.processor))
    if not code.features:
        return tuple(pairs)
    agents = ((agent, pair.unnamed) for pair in pairs if (agent := pair.agent_of(code)))
    return tuple(TargetPair(code, agent, unnamed) for agent, unnamed in agents)


def _pair(code: TargetId, agent: TargetId) -> TargetPair:
    return TargetPair(code, agent, unnamed_features(agent.processor))


def parse_pairs(
    text: str,
    *,
    force: bool = False,
    source: str = "FROM=TO",
    native: Callable[[], Sequence[str]] | None = None,
    remedy: str = "If you know that the code runs, use --force.",
) -> tuple[TargetPair, ...]:
    """Parse text such as ``gfx1030=gfx1031,gfx1032``; both sides use the grammar of `parse_target_set`.

    ``gfx1030=extended`` represents every target in a rule; a GPU whose own target has code needs no pair. Raises
    `InputError` from ``source`` for malformed text, if FROM is the only target, for processors with an unknown machine
    number, and for pairs without a rule unless ``force``; ``remedy`` is the advice for such pairs.
    """
    code_text, equals, agents_text = text.partition("=")
    if not equals or not agents_text:
        raise InputError(source, f"{text!r}", expected="FROM=TO[,TO...], such as gfx1030=gfx1031,gfx1032")
    try:
        code = parse_known_target(target_of_product(code_text, source=source) or code_text, source=source)
        if agents_text == "extended":
            return _require_some(extended_pairs(code), code_text, source)
        agents = parse_target_set(agents_text, source=source, native=native)
    except UnknownTargetError as e:
        if force:
            raise _no_machine_number(e, source) from e
        raise
    pairs = tuple(_pair(code, agent) for agent in agents if agent != code)
    if not pairs:
        found = f"no target other than {code}, whose GPUs already load this code"
        raise InputError(source, found, expected="another target after '='")
    if not force:
        _require_rules(pairs, source, remedy)
    return pairs


def _require_rules(pairs: tuple[TargetPair, ...], source: str, remedy: str) -> None:
    for pair in pairs:
        if not _is_allowed(pair):
            raise InputError(
                source,
                f"no rule allows code for {pair.code} on {pair.agent}",
                expected=_expectation(pair),
                remedy=remedy,
            )


def _no_machine_number(error: UnknownTargetError, source: str) -> InputError:
    return InputError(
        source,
        f"no machine number is known for {error.name!r}, but the code's header must contain it",
        expected="a processor from `rocwheel targets list`, even with --force",
    )


def _require_some(pairs: tuple[TargetPair, ...], code: str, source: str) -> tuple[TargetPair, ...]:
    if not pairs:
        raise InputError(source, f"no rule allows code for {code} on any other GPU")
    return pairs


def _is_allowed(pair: TargetPair) -> bool:
    """Return whether a rule applies to the processors and their features are compatible.

    The agent must have the same setting as the code for each feature. A feature that runtimes don't name for the agent
    must be off in the code.
    """
    has_rule = find_relabeling(pair.code.processor, pair.agent.processor) is not None
    expected = {name: setting for name, setting in pair.code.features.items() if setting or name not in pair.unnamed}
    agree = all(pair.agent.features.get(name) == setting for name, setting in expected.items())
    return has_rule and agree and pair.agent.features.keys().isdisjoint(pair.unnamed)


def _expectation(pair: TargetPair) -> str:
    agents = [str(allowed.agent) for allowed in extended_pairs(pair.code)]
    return f"one of {', '.join(agents)}" if agents else "code with a rule"
