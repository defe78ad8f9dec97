"""Which code also suits other GPUs, read from ``similar_code.toml``; each rule names its source."""

from __future__ import annotations

from functools import cache

import msgspec

from rocwheel.core.decoding import read_table

__all__ = ["CodeRule", "find_relabelling", "load_rules", "loads_when_patched", "relabelled_agents", "unnamed_features"]


class CodeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Code for each of ``code`` suits each of ``agents``; who says so, and what was measured."""

    code: tuple[str, ...]
    agents: tuple[str, ...]
    loads: bool
    """Whether runtimes that distributions patched load it under its own name."""
    relabels: bool
    """Whether it may be offered under the other's name, which unmodified runtimes load."""
    source: str
    measured: str
    note: str = ""

    def is_about(self, code: str, agent: str) -> bool:
        """Return whether the rule is about code for one processor on another."""
        return code in self.code and agent in self.agents


class _Table(msgspec.Struct, frozen=True):
    unnamed: dict[str, tuple[str, ...]]
    rule: tuple[CodeRule, ...]


@cache
def _load_table() -> _Table:
    return read_table("rocwheel.targets.catalog", "similar_code.toml", _Table)


def load_rules() -> tuple[CodeRule, ...]:
    """Return all rules."""
    return _load_table().rule


def unnamed_features(processor: str) -> tuple[str, ...]:
    """Return the features of ``processor`` that runtimes don't name, as they are switched off there."""
    return _load_table().unnamed.get(processor, ())


def loads_when_patched(code: str, agent: str) -> bool:
    """Return whether patched runtimes load code for the processor ``code`` on ``agent``."""
    return any(rule.loads and rule.is_about(code, agent) for rule in load_rules())


def find_relabelling(code: str, agent: str) -> CodeRule | None:
    """Return the rule by which code for the processor ``code`` may be offered to ``agent`` under its name."""
    return next((rule for rule in load_rules() if rule.relabels and rule.is_about(code, agent)), None)


def relabelled_agents(code: str) -> tuple[str, ...]:
    """Return the other processors to which code for the processor ``code`` may be offered, each once."""
    agents = (agent for rule in load_rules() if rule.relabels and code in rule.code for agent in rule.agents)
    return tuple(dict.fromkeys(agent for agent in agents if agent != code))
