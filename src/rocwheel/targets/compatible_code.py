"""Which code may pass for another target's, from ``compatible_code.toml``: what ``extended`` packages offer."""

from __future__ import annotations

from functools import cache

import msgspec

from rocwheel.binary.retarget import TargetPair
from rocwheel.binary.target_id import parse_target_id
from rocwheel.errors import InputError
from rocwheel.tables import read_table

__all__ = ["CompatibleCodeRule", "extended_pairs", "find_rule", "load_rules", "parse_pairs"]


class CompatibleCodeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Code for each of ``code`` runs on each of ``agents``; who says so, and what was compared."""

    code: tuple[str, ...]
    agents: tuple[str, ...]
    source: str
    measured: str
    note: str = ""


class _Table(msgspec.Struct, frozen=True):
    rule: tuple[CompatibleCodeRule, ...]


@cache
def load_rules() -> tuple[CompatibleCodeRule, ...]:
    """Return all rules."""
    return read_table("rocwheel.targets", "compatible_code.toml", _Table).rule


def find_rule(pair: TargetPair) -> CompatibleCodeRule | None:
    """Return the rule that allows ``pair``; features play no part in it."""
    for rule in load_rules():
        if pair.code.processor in rule.code and pair.agent.processor in rule.agents:
            return rule
    return None


def extended_pairs(processor: str) -> tuple[TargetPair, ...]:
    """Return all pairs that let code for ``processor`` pass for another target's."""
    agents = dict.fromkeys(agent for rule in load_rules() if processor in rule.code for agent in rule.agents)
    code = parse_target_id(processor)
    return tuple(TargetPair(code, parse_target_id(agent)) for agent in agents if agent != processor)


def parse_pairs(text: str, *, force: bool = False, source: str = "FROM=TO") -> tuple[TargetPair, ...]:
    """Parse ``gfx1030=gfx1031,gfx1032``; ``gfx1030=extended`` stands for every target that a rule names.

    Raises `InputError`, led by ``source``, for text of another form, and for pairs without a rule unless ``force``.
    """
    code_text, equals, agents_text = text.partition("=")
    if not equals or not agents_text:
        raise InputError(source, f"{text!r}", expected="FROM=TO[,TO...], such as gfx1030=gfx1031,gfx1032")
    code = parse_target_id(code_text, source=source)
    if agents_text == "extended":
        return _require_some(extended_pairs(code.processor), code_text, source)
    pairs = tuple(TargetPair(code, parse_target_id(agent, source=source)) for agent in agents_text.split(","))
    for pair in pairs:
        if find_rule(pair) is None and not force:
            raise InputError(
                source,
                f"no rule says that code for {pair.code} runs on {pair.agent}",
                expected=_expectation(pair),
                remedy="Use --force if you know that it does.",
            )
    return pairs


def _require_some(pairs: tuple[TargetPair, ...], code: str, source: str) -> tuple[TargetPair, ...]:
    if not pairs:
        raise InputError(source, f"no rule says that code for {code} runs on any other GPU")
    return pairs


def _expectation(pair: TargetPair) -> str:
    agents = [str(allowed.agent) for allowed in extended_pairs(pair.code.processor)]
    return f"one of {', '.join(agents)}" if agents else "code that a rule is about"
