"""Selects target families for an environment from the user's choice, the GPUs, or the default, in that order."""

from __future__ import annotations

import re
from typing import NamedTuple

from . import _build_info
from ._gpus import base_target, survey_gpus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._system import System

CHOICE_VARIABLE = "ROCM_SDK_TARGET_FAMILY"
"""The variable that contains the requested families, separated by commas, semicolons, or blanks."""


class Selection(NamedTuple):
    """The outcome of a decision."""

    families: tuple[str, ...]
    """The chosen families.

    Empty if there is no decision, or if the chosen families are available only on other platforms.
    """

    reason: str
    """``environment``, ``detection``, ``default``, or ``none``."""

    explanation: str
    """An explanation of the decision, or the reason why no families were chosen."""


def available_families(platform: str) -> list[str]:
    """Return the families of this release for a platform (a value of ``sys.platform``)."""
    return [name for name, family in _build_info.FAMILIES.items() if platform in family["platforms"]]


def family_serving(target: str, platform: str) -> str | None:
    """Return the family that contains code for a GPU target, or `None`. The target's features don't matter."""
    wanted = base_target(target)
    available = available_families(platform)
    if wanted in available:
        return wanted
    return next((name for name in available if wanted in _build_info.FAMILIES[name]["targets"]), None)


def select(system: System) -> Selection:
    """Select families for a machine.

    Raises `ValueError` with the available families if the user's choice isn't available.
    """
    return _select_chosen(system) or _select_detected(system) or _select_default(system)


def _select_chosen(system: System) -> Selection | None:
    choice = system.variable(CHOICE_VARIABLE)
    names = [name for name in re.split(r"[,;\s]+", choice) if name]
    if not names or not _build_info.FAMILIES:  # there is no choice if there are no packages for families
        return None
    families = {name: family_serving(name, system.platform) for name in names}
    absent = [name for name, family in families.items() if family is None]
    # A family for another platform isn't an error, because users create a lock file for all platforms on one machine.
    elsewhere = {name: [one for one in _all_platforms() if family_serving(name, one)] for name in absent}
    unknown = [name for name, platforms in elsewhere.items() if not platforms]
    if unknown:
        raise _no_packages(choice, unknown, system.platform)
    chosen = tuple(dict.fromkeys(family for family in families.values() if family))
    notes = [f"{', '.join(chosen)} chosen by {CHOICE_VARIABLE}={choice}"] if chosen else []
    notes += _explain_others(families)
    notes += [f"this release has packages for {name} only on {', '.join(others)}" for name, others in elsewhere.items()]
    return Selection(chosen, "environment", "; ".join(notes))


def _no_packages(choice: str, unknown: list[str], platform: str) -> ValueError:
    return ValueError(
        f"{CHOICE_VARIABLE}={choice}: ROCm {_build_info.VERSION} has no packages for {', '.join(unknown)} on "
        f"{platform}. Available: {_available(platform)}. "
        "Choose one of these families, or unset the variable to detect the GPU."
    )


def _all_platforms() -> list[str]:
    return sorted({platform for family in _build_info.FAMILIES.values() for platform in family["platforms"]})


def _available(platform: str) -> str:
    """Return text that lists the families for a platform or, if there are none, for other platforms."""
    others = (f"{', '.join(available_families(other))} on {other}" for other in _all_platforms())
    return ", ".join(available_families(platform)) or f"nothing on {platform}; {', '.join(others)}"


def _select_detected(system: System) -> Selection | None:
    # Invalid variables and files matter only to users who request packages that depend on the GPU.
    gpus, problems = survey_gpus(system)
    targets = tuple(dict.fromkeys(base_target(gpu.target) for gpu in gpus))
    if not targets:
        return Selection((), "none", str(problems[0])) if problems else None
    serving = {target: family_serving(target, system.platform) for target in targets}
    families = tuple(dict.fromkeys(family for family in serving.values() if family))
    if families:
        without = [target for target, family in serving.items() if not family]
        notes = [f"{', '.join(families)} chosen for the GPUs found: {', '.join([t for t in targets if serving[t]])}"]
        notes += _explain_others(serving)
        notes += [f"this release has no packages for {', '.join(without)}"] if without else []
        return Selection(families, "detection", "; ".join([*notes, *map(str, problems)]))
    return Selection((), "none", f"this release has no packages for the GPUs found: {', '.join(targets)}")


def _explain_others(serving: dict[str, str | None]) -> list[str]:
    """Return an explanation for each target that uses another target's package."""
    if _build_info.LAYOUT != "neutral":
        return []
    others = {base_target(target): family for target, family in serving.items() if family}
    return [
        f"{target} doesn't have its own package, but runs the code for {family}"
        for target, family in others.items()
        if target != family
    ]


def _select_default(system: System) -> Selection:
    default = _build_info.DEFAULT_FAMILY
    if default and default in available_families(system.platform):
        return Selection((default,), "default", f"{default} is this release's default; no AMD GPU was found")
    return Selection((), "none", "no AMD GPU was found")


def choose_extras(selection: Selection, platform: str) -> dict[str, list[list[str]]]:
    """Return all extras with their requirements and markers, including extras that depend on the selection.

    Without a selection, such an extra requires a nonexistent version of the core package. The local label of that
    version contains the reason and the remedy, because installers only show unsatisfied requirements.
    """
    extras = {extra: [list(pair) for pair in pairs] for extra, pairs in _build_info.EXTRAS.items()}
    for extra, requirement in _build_info.SELECTED.items():
        if selection.families:
            extras[extra] = [[requirement.format(family=family), ""] for family in selection.families]
        else:
            extras[extra] = [[_refusal(extra, selection, platform), ""]]
    return extras


def choose_requires(selection: Selection, platform: str) -> list[str]:
    """Return the requirements of `rocm` without an extra, including requirements that depend on the selection.

    Raises `ValueError` with the remedy if there is no selection.
    """
    chosen: list[str] = getattr(_build_info, "REQUIRES_SELECTED", [])
    if chosen and not selection.families:
        msg = (
            f"{selection.explanation}. Set {CHOICE_VARIABLE} to the GPUs that will run ROCm {_build_info.VERSION}, "
            f"and install again. Available: {_available(platform)}."
        )
        raise ValueError(msg)
    selected = [text.format(family=family) for text in chosen for family in selection.families]
    return [*_build_info.REQUIRES, *selected]


def _refusal(extra: str, selection: Selection, platform: str) -> str:
    families = available_families(platform)
    text = f"this release has no {extra} packages for {platform}"
    if families:
        extras = " ".join(f"{extra}-{family}" for family in families)
        text = f"{selection.explanation} so request one of the extras {extras}"
    # pip shows the label as written. uv shows the normalized label, which is lowercase with dots between words.
    label = ".".join(re.findall("[a-z0-9]+", text.lower()))
    public_version = _build_info.VERSION.partition("+")[0]
    return f"{_build_info.PACKAGES['core']['dist']}=={public_version}+{label}"
