"""The selector as an sdist and as a wheel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.distributions.formats.metadata.metadata import CoreMetadata, render_metadata
from rocwheel.distributions.formats.wheel import WheelName, normalized_file_part
from rocwheel.packages.plan import PlannedSdist, PlannedWheel, TextMember
from rocwheel.packages.planning.sdk_source import (
    SDK_LICENSE,
    render_literals,
    sdk_component,
    sdk_license,
    sdk_module,
)
from rocwheel.packages.planning.selector.build_info import build_info

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.packages.planning.selector.facts import SelectorFacts

__all__ = ["plan_selector_sdist", "plan_selector_wheel", "requires_txt", "selector_requirements"]

_PYPROJECT = """\
# The backend is part of this sdist, so that it builds in isolation and without an index.
[build-system]
requires = []
build-backend = "selector"
backend-path = ["src"]
"""

_ENTRY_POINT = {"rocm-sdk": "{module}._cli:main"}


def _metadata(facts: SelectorFacts) -> CoreMetadata:
    recipe = facts.recipe
    return CoreMetadata(
        recipe.selector.distribution,
        facts.version,
        recipe.selector.summary,
        requires_python=recipe.requires_python,
        license_expression=SDK_LICENSE,  # it holds the SDK source alone, no file of ROCm
        license_files=("LICENSE",),
    )


def plan_selector_sdist(facts: SelectorFacts, *, folder: str = "") -> PlannedSdist:
    """Return the sdist that chooses packages at install time, with its build backend inside."""
    module = facts.recipe.selector.module
    metadata = msgspec.structs.replace(_metadata(facts), dynamic=("requires-dist", "provides-extra"))
    info = build_info(facts, decides=True)
    files = {f"{module}/{path}": text for path, text in sdk_module("rocm_sdk").items()}
    files |= {f"selector/{path}": text for path, text in sdk_module("selector").items()}
    files[f"{module}/_build_info.py"] = render_literals(info)
    # Scripts that promote the reference's sdist change these two, as setuptools makes them.
    egg_info = f"{normalized_file_part(metadata.name)}.egg-info"
    files[f"{egg_info}/PKG-INFO"] = render_metadata(metadata).decode()
    files[f"{egg_info}/requires.txt"] = requires_txt(info)
    files = {f"src/{path}": text for path, text in files.items()}
    files["pyproject.toml"] = _PYPROJECT
    files["LICENSE"] = sdk_license()
    files["PKG-INFO"] = render_metadata(metadata).decode()
    return PlannedSdist(metadata.name, facts.version, metadata, files, folder)


def requires_txt(info: Mapping[str, Any]) -> str:
    """Return what is required as setuptools lists it: without an extra, then a section for each extra and marker."""
    sections = [*info["REQUIRES"]]
    for extra, rows in info["EXTRAS"].items():
        sections += ["", f"[{extra}]", *(text for text, marker in rows if not marker)]
        for text, marker in rows:
            sections += ["", f"[{extra}:{marker}]", text] if marker else []
    return "\n".join([*sections, ""])


def plan_selector_wheel(facts: SelectorFacts, *, folder: str = "") -> PlannedWheel:
    """Return the pure wheel with an explicit extra per target, for lock files."""
    module = facts.recipe.selector.module
    info: dict[str, Any] = build_info(facts, decides=False)
    texts = sdk_module("rocm_sdk") | {"_build_info.py": render_literals(info)}
    metadata = msgspec.structs.replace(
        _metadata(facts), requires=selector_requirements(info), extras=tuple(info["EXTRAS"])
    )
    return PlannedWheel(
        "selector",
        WheelName(metadata.name, facts.version, "py3-none-any"),
        metadata,
        tuple(TextMember(f"{module}/{path}", text) for path, text in sorted(texts.items())),
        licenses=(TextMember("LICENSE", sdk_license()),),
        components=(sdk_component("LICENSE"),),
        console_scripts={name: target.format(module=module) for name, target in _ENTRY_POINT.items()},
        is_purelib=True,
        folder=folder,
    )


def selector_requirements(info: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the wheel requires, with the extras as markers, by the literals of its ``_build_info.py``."""
    extras: dict[str, list[list[str]]] = info["EXTRAS"]
    rows = ((extra, *row) for extra, rows in extras.items() for row in rows)
    marked = (f"{text}; {f'({marker}) and ' if marker else ''}extra == '{extra}'" for extra, text, marker in rows)
    return (*info["REQUIRES"], *marked)
