"""Defines errors for GPU targets that are unknown, illegal, conflicting, missing, or without a name in a tool."""

from __future__ import annotations

import difflib
from itertools import takewhile
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import processor_of
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class UnknownTargetError(InputError):
    """An unknown target, generic processor, family, policy, or packager's list; ``nearest`` contains similar names."""

    def __init__(
        self,
        name: str,
        known: Iterable[str],
        *,
        source: str,
        what: str = "GPU target",
        remedy: str = "To print all known names, use `rocwheel targets list`.",
    ) -> None:
        self.name = name
        self.nearest = _nearest(name, known)
        remedy = f"Similar names: {', '.join(self.nearest)}." if self.nearest else remedy
        super().__init__(source, f"{name!r} isn't a known {what}", remedy=remedy)


def _nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    by_text = {other.lower(): other for other in sorted(set(known))}
    close = [by_text[text] for text in difflib.get_close_matches(name.lower(), by_text, n=12, cutoff=0.6)]
    # People usually mean the similar name with the same beginning: a generation, not a stepping.
    return tuple(sorted(close, key=lambda other: -_alike(name, other))[:3])


def _alike(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one.lower(), other.lower(), strict=False)))


class AmbiguousProductError(InputError):
    """A name that matches products with different targets; ``choices`` contains each target, keyed by full name."""

    def __init__(self, name: str, choices: Mapping[str, str], *, source: str) -> None:
        self.name = name
        self.choices = dict(choices)
        listed = ", ".join(f"{product} ({target})" for product, target in choices.items())
        super().__init__(source, f"{name!r} matches several products", expected=f"one of {listed}")


class IllegalFeatureError(InputError):
    """A target ID sets a feature that compilers don't accept for its processor, such as ``gfx1030:xnack+``."""

    def __init__(self, target: str, feature: str, allowed: Sequence[str], *, source: str) -> None:
        self.target = target
        self.feature = feature
        self.allowed = tuple(allowed)
        expected = f"no features other than {' and '.join(allowed)}" if allowed else "no features"
        super().__init__(
            source, f"{target!r} sets {feature}, which compilers don't accept for its processor", expected=expected
        )


class ConflictError(InputError):
    """Target IDs for one processor set different features, which compilers don't accept together."""

    def __init__(self, one: str, other: str, *, source: str) -> None:
        self.one = one
        self.other = other
        super().__init__(
            source,
            f"{one!r} and {other!r} set different features for the same processor",
            expected="the same features in every target ID for a processor",
            remedy=f"Specify only {processor_of(one)!r}, which covers every setting, or each setting that you want.",
        )


class EmptySetError(InputError):
    """No targets are specified, but at least one is required."""

    def __init__(self, *, source: str) -> None:
        super().__init__(source, "doesn't specify a GPU target", expected="at least one, such as gfx1100")


class NoGpuError(InputError):
    """The GPUs of this machine are requested, but the machine has no GPUs."""

    def __init__(self) -> None:
        super().__init__(
            "native",
            "no AMD GPU was found on this machine",
            remedy="To see why, run `rocwheel targets detect --check`, or specify the targets by name.",
        )


class NoFlagError(InputError):
    """A distribution has no name for some of the targets, such as generic processors."""

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
    """The targets of a ROCm version aren't recorded."""

    def __init__(self, version: str, known: str, *, source: str) -> None:
        self.version = version
        super().__init__(
            source,
            f"the targets of ROCm {version} are unknown",
            expected=known,
            remedy="A newer version of rocwheel may support it.",
        )
