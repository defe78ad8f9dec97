"""Wheel variants (a draft) among planned wheels: those that select the packages for a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.code_objects.target_id import processor_of
from rocwheel.core.errors import InputError
from rocwheel.packages.plan import PlannedWheel
from rocwheel.packages.planning.sdk_source import sdk_license
from rocwheel.packages.variants.gpu_package import GpuPackage, split_distribution
from rocwheel.packages.variants.selecting_wheels import make_selecting_wheels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["plan_variants"]


def plan_variants(wheels: Iterable[PlannedWheel]) -> list[PlannedWheel]:
    """Return the wheels that select among the ``wheels`` that exist for each GPU; raise `InputError` if none does."""
    selecting = make_selecting_wheels(_packages(wheels), sdk_license())
    if not selecting:
        option, found = "--variants", "no package exists for each GPU"
        raise InputError(option, found, expected="packages of single targets or families", remedy="Try --split-device.")
    return [
        PlannedWheel("variants", made.name, made.metadata, (), info_texts=made.texts, is_purelib=True)
        for made in selecting
    ]


def _packages(wheels: Iterable[PlannedWheel]) -> Iterator[GpuPackage]:
    for wheel in wheels:
        name = None if wheel.folder else split_distribution(wheel.name.distribution)
        if name is not None:
            python, abi, platform = wheel.name.tag.split("-")
            declared = tuple(dict.fromkeys(map(processor_of, wheel.targets)))
            metadata = wheel.metadata
            yield GpuPackage(
                *name,
                wheel.name.version,
                (python, abi, platform),
                declared,
                metadata.requires,
                metadata.requires_python,
            )
