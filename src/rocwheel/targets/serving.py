"""Determines whether a file, artifact, or distribution that is labeled with a target or family serves certain GPUs.

``lib/librocblas.so.5.gfx906`` replaces ``lib/librocblas.so.5`` and has the same SONAME. Both files are in the same
folder, because libraries look for their kernels next to the loaded file. Some libraries use the first part of the
file's name.

Artifacts and distribution names use the same labels: ``gfx942``, ``gfx90a:xnack+``, ``gfx94X-dcgpu``,
``gfx9-4-generic``, ``generic``. Normalized names contain families in lowercase and without underscores.
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
    """Return the path of the library for ``target`` that replaces ``library``, whose file name is its SONAME."""
    return f"{library}.{target}"


def split_overlay_path(path: str) -> tuple[str, str] | None:
    """Return the library that the library at ``path`` replaces, and its target, or `None` for other files."""
    library, _, target = path.rpartition(".")
    name = library.rpartition("/")[2]
    is_library = ".so." in f"{name[1:]}."
    return (library, target) if is_library and _TARGET.fullmatch(target) else None


_LABEL = re.compile(r"(?:^|-)(gfx[0-9a-f][0-9a-z]*(?:-[0-9a-z]+)*)$")
"""Matches the end of a distribution's normalized name if the distribution is for only some GPUs."""
_STRICT = "-strict"
"""The suffix in labels for kernels that are for one revision of a GPU's software interface.

Such kernels serve the GPU.
"""


def serves(label: str, wanted: Iterable[TargetId]) -> bool:
    """Return whether an unmodified runtime can use content with this label on one of the GPUs in ``wanted``.

    Features matter only if both sides set them. A label that isn't a target, family, or generic processor in the
    catalog serves only the GPU with that name.
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
    """Return the target or family at the end of a normalized distribution name, or `GENERIC` if there is neither."""
    match = _LABEL.search(project)
    return match[1] if match else GENERIC


def _processors_of(name: str) -> tuple[str, ...]:
    plain = _normalized(name).removesuffix(_STRICT)
    return _families().get(plain) or (plain,)


def _suits(code: TargetId, agent: TargetId) -> bool:
    if any(agent.features.get(name, setting) != setting for name, setting in code.features.items()):
        return False
    is_general = code.processor == SPIRV or code.processor in load_catalog().generics_of(agent.processor)
    # A package named for gfx1250 also contains the code for gfx1250-strict.
    return is_general or code.processor in (agent.processor, load_catalog().package_of(agent.processor))


@cache
def _families() -> dict[str, tuple[str, ...]]:
    known = {_normalized(name): targets for name, targets in load_catalog().family_targets.items()}
    for family in load_table().families:
        known |= {_normalized(spelling): tuple(family.targets) for spelling in (family.name, *family.spelled)}
    return known


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
