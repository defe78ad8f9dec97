"""For which GPUs requirements are locked, and whether the locked packages are for these.

The selector decides some requirements when it is built, by the GPUs of the machine, unless a variable names them. A
machine that locks is seldom the one that installs: so the GPUs are always named, and what was locked is compared.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.artifacts.artifact import GENERIC
from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError
from rocwheel.core.messages import first_of
from rocwheel.core.workers import convert_all, raise_all
from rocwheel.stores.urls import hide_users
from rocwheel.targets.errors import UnknownTargetError
from rocwheel.targets.serving import label_of_project, serves
from rocwheel.targets.spelling.target_set import parse_target_set
from rocwheel.wheels.names import is_wheel_file_name, wheel_platforms
from rocwheel.wheels.requirements import RequirementError, read_requirement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from packaging.requirements import Requirement

__all__ = [
    "TARGET_VARIABLE",
    "asked_extras",
    "check_locked",
    "has_gpu_packages",
    "lacking_systems",
    "parse_requirements",
    "targets_to_lock",
]

TARGET_VARIABLE = "ROCM_SDK_TARGET_FAMILY"
"""Names the GPUs to the selector, as `rocm_sdk` reads it."""
_DEVICE = "device"
"""The extra for the GPUs that the selector decides on; with a target behind it, that for one GPU."""
_EVERY_DEVICE = "device-all"
"""The extra for every GPU that there are packages for."""
_GPU = re.compile(r"gfx[0-9a-f]+")
"""One GPU, as the selector takes it; it takes families only as they are spelled, which no normalised name tells."""
_SYSTEMS = {"glibc": "Linux", "musl": "Linux", "windows": "Windows"}
"""Names by systems of platform tags."""
_REMEDY = "Say for which GPUs: --targets gfx942."


def parse_requirements(texts: Iterable[str]) -> tuple[Requirement, ...]:
    """Return requirements; raise `InputError` for each text that is none."""
    return tuple(convert_all("requirements", _parse, texts))


def _parse(text: str) -> Requirement:
    try:
        return read_requirement(text)
    except RequirementError as e:
        expected = "a requirement such as 'rocm[libraries,device-gfx942]==7.2.*'"
        found = f"is not a requirement ({hide_users(str(e).splitlines()[0])})"
        raise InputError(hide_users(text), found, expected=expected) from e


def asked_extras(requirements: Iterable[Requirement]) -> tuple[str, ...]:
    """Return the targets and families that extras name: ``gfx942`` for ``device-gfx942``, each once."""
    extras = _all_extras(requirements)
    return tuple(dict.fromkeys(extra.removeprefix(f"{_DEVICE}-") for extra in extras if extra.startswith("device-gfx")))


def _all_extras(requirements: Iterable[Requirement]) -> list[str]:
    return [canonicalize_name(extra) for requirement in requirements for extra in sorted(requirement.extras)]


def _own_names(requirements: Iterable[Requirement]) -> tuple[str, ...]:
    """Return the GPUs of packages that are required by their own names: ``gfx942`` for ``rocm-sdk-device-gfx942``."""
    labels = (label_of_project(canonicalize_name(requirement.name)) for requirement in requirements)
    return tuple(dict.fromkeys(label for label in labels if _GPU.fullmatch(label)))


def targets_to_lock(
    requirements: Sequence[Requirement], targets: str | None, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the GPUs to name to the selector: given ones, else those that requirements name, else the variable's.

    Raises `InputError` when a requirement depends on the GPU and nothing names one.
    """
    if targets is not None:
        return parse_target_set([targets], source="--targets").processors
    named = tuple(dict.fromkeys((*asked_extras(requirements), *_own_names(requirements))))
    if not named:
        named = tuple(environ.get(TARGET_VARIABLE, "").replace(",", " ").replace(";", " ").split())
    depending = [str(one) for one in requirements if any(canonicalize_name(extra) == _DEVICE for extra in one.extras)]
    if depending and not named:
        found = "is decided by the GPUs of a machine, and that which installs may have others"
        raise InputError(hide_users(first_of(depending)), found, remedy=_REMEDY)
    return named


def check_locked(
    projects: Iterable[str], requirements: Iterable[Requirement], targets: Sequence[str], source: str, *, is_given: bool
) -> None:
    """Compare the locked ``projects`` with the GPUs that they are to be for; raise `InputError` for each fault.

    A package for other GPUs was chosen by this machine, or is asked for besides GPUs that are given (``is_given``). An
    extra that a package lacks is passed over by resolvers: then code for its GPU is missing.
    """
    projects, requirements = tuple(projects), tuple(requirements)
    labels = {project: label for project in projects if (label := label_of_project(project)) != GENERIC}
    wanted = [agent for target in targets for agent in _agents(target)]
    others = {
        project: label
        for project, label in labels.items()
        if not targets or not (serves(label, wanted) or label in targets)
    }
    askers = {project: asker for project in others if (asker := _asker(project, labels[project], requirements))}
    problems = [_stranger(project, label, projects) for project, label in others.items() if project not in askers]
    if is_given:
        problems += _unnamed(askers, targets)
    problems += [
        InputError(source, f"has no package for {target}, which an extra asks for", remedy=_without(labels.values()))
        for target in asked_extras(requirements)
        if not any(label == target or serves(label, _agents(target)) for label in labels.values())
    ]
    raise_all(source, problems)


def has_gpu_packages(projects: Iterable[str]) -> bool:
    """Return whether there is a package for certain GPUs among projects."""
    return any(label_of_project(project) != GENERIC for project in projects)


def lacking_systems(wheels: Mapping[str, Sequence[str]], targets: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return, for each GPU, the systems that locked packages are for, and none of those with its code.

    ``wheels`` has file names by project. Only GPUs that some system has packages for, and lacking any, are named.
    """
    everywhere = _systems(wheels.values())
    found = {
        target: _systems(
            names
            for project, names in wheels.items()
            if (label := label_of_project(project)) != GENERIC and (label == target or serves(label, _agents(target)))
        )
        for target in targets
    }
    return {
        target: missing
        for target, systems in found.items()
        if systems and (missing := tuple(sorted(everywhere - systems)))
    }


def _systems(wheels: Iterable[Iterable[str]]) -> frozenset[str]:
    names = (name for files in wheels for name in files if is_wheel_file_name(name))
    return frozenset(_SYSTEMS[tag.system] for name in names for tag in wheel_platforms(name) if tag.system in _SYSTEMS)


def _asker(project: str, label: str, requirements: Sequence[Requirement]) -> str:
    """Return what asks for a package by its GPU: an extra for it, its own name, `_EVERY_DEVICE`; empty for nothing."""
    extra = next((one for one in asked_extras(requirements) if label == one or serves(label, _agents(one))), "")
    if extra:
        return f"{_DEVICE}-{extra}"
    if any(canonicalize_name(requirement.name) == project for requirement in requirements):
        return project
    is_device = project.removesuffix(f"-{label}").endswith(f"-{_DEVICE}")
    return _EVERY_DEVICE if is_device and _EVERY_DEVICE in _all_extras(requirements) else ""


def _unnamed(askers: Mapping[str, str], targets: Sequence[str]) -> Iterator[InputError]:
    """Yield the errors for packages that are asked for, and that are for none of the GPUs which are named."""
    given = f"name {', '.join(targets)} alone, and"
    for project, asker in askers.items():
        label, is_name = label_of_project(project), asker == project
        found = f"{project} is required" if is_name else f"an extra asks for {label}"
        remedy = f"Name {label} as well, or leave {'the package' if is_name else 'its extra'} out."
        if asker != _EVERY_DEVICE:
            yield InputError("--targets", f"{given} {found}", remedy=remedy)
    if every := sorted(label_of_project(project) for project, asker in askers.items() if asker == _EVERY_DEVICE):
        remedy = f"Leave --targets out, or ask for device-{targets[0]} in place of {_EVERY_DEVICE}."
        yield InputError("--targets", f"{given} {_EVERY_DEVICE} asks for others ({first_of(every)})", remedy=remedy)


def _stranger(project: str, label: str, locked: Collection[str]) -> InputError:
    """Return the error for a package of other GPUs: a plain wheel with variants requires those for all of them."""
    plain = project.removesuffix(f"-{label}")
    if plain not in locked:
        found = f"is for {label}: this machine's GPUs chose it, or another package requires it"
        return InputError(project, found, remedy=_REMEDY)
    remedy = f"Lock {plain}-gfx... for the GPU in its place, or an extra such as rocm[device-gfx942]."
    return InputError(
        project, f"is required by the plain wheel of {plain}, as lock files have no variants", remedy=remedy
    )


def _without(labels: Iterable[str]) -> str:
    found = sorted(labels)
    return f"Does the release have such an extra? It has packages for {first_of(found)}." if found else (
        "Does the release have such an extra?"
    )  # fmt: skip


def _agents(target: str) -> tuple[TargetId, ...]:
    try:
        return parse_target_set([target], source=target).ids
    except UnknownTargetError:
        return (TargetId(target),)  # one that is newer than the catalogue
