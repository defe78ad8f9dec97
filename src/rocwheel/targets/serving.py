"""Whether a file, artifact or distribution that is labeled with a target or family serves given GPUs.

``lib/librocblas.so.5.gfx906`` stands in for ``lib/librocblas.so.5``, whose SONAME it has. It lies in the same folder as
libraries look for their kernels beside the file that they were loaded from, some of them by the beginning of its name.

Labels are those of artifacts and of the names of distributions: ``gfx942``, ``gfx90a:xnack+``, ``gfx94X-dcgpu``,
``gfx9-4-generic``, ``generic``. Normalized names have families in lower case and without underscores.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.targets.catalog import SPIRV, load_catalog
from rocwheel.targets.compatibility import GENERIC
from rocwheel.targets.kernel_files import load_table

if TYPE_CHECKING:
    from collections.abc import Iterable


_TARGET = re.compile(r"gfx[0-9a-f]+(-[0-9a-z]+)*")


def overlay_path(library: str, target: str) -> str:
    """Return the path of the library for ``target`` that stands in for ``library``, which is called by its SONAME."""
    return f"{library}.{target}"


def split_overlay_path(path: str) -> tuple[str, str] | None:
    """Return the library that the one at ``path`` stands in for, and its target; none for any other file."""
    library, _, target = path.rpartition(".")
    name = library.rpartition("/")[2]
    is_library = ".so." in f"{name[1:]}."
    return (library, target) if is_library and _TARGET.fullmatch(target) else None


_LABEL = re.compile(r"(?:^|-)(gfx[0-9a-f][0-9a-z]*(?:-[0-9a-z]+)*)$")
"""What the normalized name of a distribution for some GPUs ends with."""
_STRICT = "-strict"
"""Ends the label of kernels for one revision of a GPU's software interface; they are for the GPU."""


def serves(label: str, wanted: Iterable[TargetId]) -> bool:
    """Return whether an unmodified runtime may take what is labeled so for one of the GPUs ``wanted``.

    Features count only where both sides name them. A label that is no target, family or generic processor that the
    catalog knows serves the GPU of that name alone.
    """
    if label == GENERIC:
        return True
    name, _, features = label.partition(":")
    try:
        settings = parse_target_id(f"gfx:{features}").features if features else {}
    except InputError:
        return False
    codes = [TargetId(processor, **settings) for processor in _processors_of(name)]
    return any(_suits(code, agent) for agent in wanted for code in codes)


def label_of_project(project: str) -> str:
    """Return the target or family that the normalized name of a distribution ends with; `GENERIC` for none."""
    match = _LABEL.search(project)
    return match[1] if match else GENERIC


def _processors_of(name: str) -> tuple[str, ...]:
    plain = _normalized(name).removesuffix(_STRICT)
    return _families().get(plain) or (plain,)


def _suits(code: TargetId, agent: TargetId) -> bool:
    if any(agent.features.get(name, setting) != setting for name, setting in code.features.items()):
        return False
    is_general = code.processor == SPIRV or code.processor in load_catalog().generics_of(agent.processor)
    # A package named for gfx1250 holds the code for gfx1250-strict, too.
    return is_general or code.processor in (agent.processor, load_catalog().package_of(agent.processor))


@cache
def _families() -> dict[str, tuple[str, ...]]:
    known = {_normalized(name): targets for name, targets in load_catalog().family_targets.items()}
    for family in load_table().families:
        known |= {_normalized(spelling): tuple(family.targets) for spelling in (family.name, *family.spelled)}
    return known


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
