"""The errors of GPU targets that are given: unknown, illegal, in conflict, without a spelling, or none at all."""

from __future__ import annotations

import difflib
from itertools import takewhile
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import processor_of
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class UnknownTargetError(InputError):
    """An unknown target, generic processor, family, policy or packager's list; ``nearest`` holds similar names."""

    def __init__(
        self,
        name: str,
        known: Iterable[str],
        *,
        source: str,
        what: str = "GPU target",
        remedy: str = "`rocwheel targets list` prints them all.",
    ) -> None:
        self.name = name
        self.nearest = _nearest(name, known)
        remedy = f"Nearest: {', '.join(self.nearest)}." if self.nearest else remedy
        super().__init__(source, f"{name!r} is not a known {what}", remedy=remedy)


def _nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    by_text = {other.lower(): other for other in sorted(set(known))}
    close = [by_text[text] for text in difflib.get_close_matches(name.lower(), by_text, n=12, cutoff=0.6)]
    # Of similar names, people usually mean the one that begins alike: a generation, not a stepping.
    return tuple(sorted(close, key=lambda other: -_alike(name, other))[:3])


def _alike(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one.lower(), other.lower(), strict=False)))


class AmbiguousProductError(InputError):
    """The name of products that have different targets; ``choices`` has the target of each by its whole name."""

    def __init__(self, name: str, choices: Mapping[str, str], *, source: str) -> None:
        self.name = name
        self.choices = dict(choices)
        listed = ", ".join(f"{product} ({target})" for product, target in choices.items())
        super().__init__(source, f"{name!r} may be several products", expected=f"one of {listed}")


class IllegalFeatureError(InputError):
    """A target id sets a feature that no compiler takes for its processor, such as ``gfx1030:xnack+``."""

    def __init__(self, target: str, feature: str, allowed: Sequence[str], *, source: str) -> None:
        self.target = target
        self.feature = feature
        self.allowed = tuple(allowed)
        expected = f"no feature other than {' and '.join(allowed)}" if allowed else "no feature"
        super().__init__(
            source, f"{target!r} sets {feature}, which no compiler takes for its processor", expected=expected
        )


class ConflictError(InputError):
    """Target ids of one processor name different features, which no compiler takes together."""

    def __init__(self, one: str, other: str, *, source: str) -> None:
        self.one = one
        self.other = other
        super().__init__(
            source,
            f"{one!r} and {other!r} name different features of one processor",
            expected="the same features in every target id of a processor",
            remedy=f"Give {processor_of(one)!r} alone (it serves every setting), or each setting that you want.",
        )


class EmptySetError(InputError):
    """There is no target where at least one is needed."""

    def __init__(self, *, source: str) -> None:
        super().__init__(source, "names no GPU target", expected="at least one, such as gfx1100")


class NoGpuError(InputError):
    """The GPUs of this machine are asked for, but it has none."""

    def __init__(self) -> None:
        super().__init__(
            "native",
            "no AMD GPU was found on this machine",
            remedy="Run `rocwheel targets detect --check` to see why, or give the targets by name.",
        )


class NoFlagError(InputError):
    """A distribution has no name for targets, such as generic processors."""

    def __init__(
        self,
        targets: Sequence[str],
        *,
        source: str = "GPU targets",
        what: str = "USE flag",
        expected: str = "specific processors, such as gfx1100",
    ) -> None:
        self.targets = tuple(targets)
        super().__init__(source, f"there is no {what} for {', '.join(targets)}", expected=expected)


class UnknownReleaseError(InputError):
    """The targets of a ROCm version are not recorded."""

    def __init__(self, version: str, known: str, *, source: str) -> None:
        self.version = version
        super().__init__(
            source,
            f"the targets of ROCm {version} are not known",
            expected=known,
            remedy="A newer rocwheel may know more versions.",
        )
