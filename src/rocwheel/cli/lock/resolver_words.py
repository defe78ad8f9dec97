"""The messages of uv, reduced to what users need to know, without passwords and queries of URLs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.cli.lock.gpus import TARGET_VARIABLE
from rocwheel.core.errors import InputError
from rocwheel.stores.urls import without_secrets
from rocwheel.wheels.requirements import read_requirement

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["lacking_extras", "why_not"]

_MOST_LINES = 8
_LACKING = re.compile(r"The package `([^`=]+)[^`]*` does not have an extra named `([^`]+)`")
_BUILD = re.compile(r"\[stderr\]\n(.*?)\n\s*(?:\n|hint:|$)", re.DOTALL)
"""What the failed build of an sdist printed."""
_NO_GPU = re.compile(rf"{TARGET_VARIABLE}=[^\s:]+: (.*?)(?: Choose one of these|$)")
"""What the selector prints where it has nothing for the GPUs that it was told."""
_REMEDY = "Check the requirements and where packages are looked for (--index-url, --find-links)."
_GPU_REMEDY = "Name GPUs that it has packages for: --targets."


def why_not(said: str) -> tuple[str, str]:
    """Return why requirements can't be resolved, in one line, and what to do about it."""
    build = _BUILD.search(said)
    no_gpu = _NO_GPU.search(" ".join(build[1].split())) if build else None
    if no_gpu:
        return without_secrets(no_gpu[1].rstrip(".")), _GPU_REMEDY
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("warning:")]
    return without_secrets(" ".join(lines[:_MOST_LINES])), _REMEDY


def lacking_extras(said: str, requirements: Iterable[str]) -> list[InputError]:
    """Return an error for each extra that is asked for by name and that the package has not: uv only warns of it."""
    parsed = list(map(read_requirement, requirements))
    asked = {(canonicalize_name(one.name), canonicalize_name(extra)) for one in parsed for extra in one.extras}
    lacking = {(canonicalize_name(name), canonicalize_name(extra)) for name, extra in _LACKING.findall(said)}
    missed, remedy = sorted(asked & lacking), "Correct its name, or leave it out."
    return [InputError(f"{name}[{extra}]", "no such extra is there", remedy=remedy) for name, extra in missed]
