"""The ``rocm`` distribution, which requires the others: an sdist that chooses for a machine, or a wheel with extras."""

from __future__ import annotations

import itertools
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.binary.platform import Platform
from rocwheel.build.plan import PlannedSdist, PlannedWheel, TextMember
from rocwheel.build.planning.libraries import common_gpus, overlaid_libraries, windows_libraries
from rocwheel.build.planning.selector_facts import find_machines
from rocwheel.build.sdk_source import SDK_LICENSE, render_literals, sdk_component, sdk_license, sdk_module
from rocwheel.targets.catalog import owned_targets
from rocwheel.wheels.metadata import CoreMetadata, render_metadata
from rocwheel.wheels.requirements import refusing_requirement
from rocwheel.wheels.writing import WheelName, normalized_file_part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.build.planning.selector_facts import SelectorFacts


def build_info(facts: SelectorFacts, *, decides: bool) -> dict[str, object]:
    """Return the literals of ``_build_info.py`` (see ``sdk/README.md``); the sdist ``decides`` at install time."""
    recipe = facts.recipe
    present = {package.key for package in facts.packages}
    machines = find_machines(facts.basis)
    families = {
        name: {"targets": list(targets), "platforms": list(machines)} for name, targets in facts.families.items()
    }
    selected = {
        extra: facts.requirement(key)
        for extra, keys in recipe.selector.extras.items()
        for key in keys
        if key in present and facts.is_selected(key)
    }
    return {
        "VERSION": facts.version,
        "LAYOUT": facts.basis.layout,
        "MODULE_SUFFIX": facts.basis.options.module_suffix,
        "PLATFORMS": list(machines),
        "MACHINES": machines,
        "FAMILIES": families,
        "DEFAULT_FAMILY": facts.default_family,
        "PACKAGES": _packages(facts, present),
        "LIBRARIES": _libraries(facts),
        "OVERLAID": overlaid_libraries(facts),
        "COMMON_GPUS": common_gpus(facts),
        "UNLOADABLE": list(recipe.unloadable),
        "REQUIRES": [facts.requirement(key) for key in recipe.selector.requires if key in present],
        "EXTRAS": _extras(facts, present, decides=decides),
        "SELECTED": selected if decides else {},
    }


def _libraries(facts: SelectorFacts) -> dict[str, dict[str, Any]]:
    """Return the rows of public libraries; one that this SDK was built without is optional."""
    if facts.basis.facts.platform is Platform.WINDOWS:
        return windows_libraries(facts)
    rows: dict[str, dict[str, Any]] = {}
    for name, library in facts.recipe.libraries.items():
        packages = (package for package in facts.packages if package.key == library.package)
        pattern = f"{library.directory}/{library.pattern}"
        shipped = any(fnmatchcase(path, pattern) for package in packages for path in package.placement.files)
        row = {"package": library.package, "directory": library.directory, "pattern": library.pattern}
        rows[name] = {**row, "optional": not shipped}
    return rows


def _packages(facts: SelectorFacts, present: set[str]) -> dict[str, dict[str, str]]:
    selector = facts.recipe.selector
    rows = {"meta": {"dist": selector.distribution, "module": selector.module, "platform_module": ""}}
    for key in facts.recipe.packages:
        if key in present:
            names = facts.basis.names(key, "{family}")
            row = {"dist": names.distribution, "module": names.module}
            rows[key] = {**row, "platform_module": names.platform_module}
    return rows


def _extras(facts: SelectorFacts, present: set[str], *, decides: bool) -> dict[str, list[list[str]]]:
    extras: dict[str, list[list[str]]] = {}
    for extra, keys in facts.recipe.selector.extras.items():
        chosen = [key for key in keys if key in present and facts.is_selected(key)]
        fixed = [[facts.requirement(key), ""] for key in keys if key in present and key not in chosen]
        if chosen:
            per_family = [_family_extra(facts, extra, key) for key in chosen]
            extras.update(itertools.chain.from_iterable(rows.items() for rows in per_family))
        elif fixed:
            extras[extra] = fixed
        elif all(facts.recipe.packages[key].kind == "device" for key in keys):
            # Frameworks ask for rocm[libraries,device]: without device packages there is nothing to add, yet no error.
            extras |= {extra: [], f"{extra}-all": []}
    return extras if decides else {name: rows for name, rows in extras.items() if rows or not facts.families}


def _family_extra(facts: SelectorFacts, extra: str, key: str) -> dict[str, list[list[str]]]:
    rows = {f"{extra}-{canonicalize_name(family)}": [[facts.requirement(key, family), ""]] for family in facts.families}
    if facts.basis.layout == "neutral":
        rows[f"{extra}-all"] = [pair for pairs in list(rows.values()) for pair in pairs]
        # Those of targets whose GPUs run the code of another target's package.
        served = ((family, target) for family, targets in facts.families.items() for target in targets)
        rows |= {
            f"{extra}-{target}": [[facts.requirement(key, family), ""]]
            for family, target in served
            if target not in facts.families
        }
        rows |= refusing_extras(extra, facts.requirement(facts.recipe.selector.requires[0]), facts.families)
    return rows


def refusing_extras(extra: str, required: str, families: Mapping[str, Sequence[str]]) -> dict[str, list[list[str]]]:
    """Return the extras of targets that no family serves; each has a requirement that can't be met and says why.

    ``required`` is what `rocm` requires in any case, ``NAME==VERSION``.
    """
    if not families:
        return {}
    served = {target for targets in families.values() for target in targets}
    name, _, version = required.partition("==")
    public = version.partition("+")[0]
    return {
        f"{extra}-{target}": [[refusing_requirement(name, public, target, families), ""]]
        for target in owned_targets()
        if target not in served
    }


_PYPROJECT = """\
# The backend is part of this sdist, so that it builds in isolation and without an index.
[build-system]
requires = []
build-backend = "selector"
backend-path = ["src"]
"""


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
        console_scripts={"rocm-sdk": f"{module}._cli:main"},
        is_purelib=True,
        folder=folder,
    )


def selector_requirements(info: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the wheel requires, with the extras as markers, by the literals of its ``_build_info.py``."""
    extras: dict[str, list[list[str]]] = info["EXTRAS"]
    rows = ((extra, *row) for extra, rows in extras.items() for row in rows)
    marked = (f"{text}; {f'({marker}) and ' if marker else ''}extra == '{extra}'" for extra, text, marker in rows)
    return (*info["REQUIRES"], *marked)
