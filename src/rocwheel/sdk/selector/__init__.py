"""The :pep:`517` build backend in the ``rocm`` sdist, which chooses packages during installation, for the machine.

The backend needs only the standard library, so it works in an isolated build environment without an index.
"""

from __future__ import annotations

import importlib
import platform
import re
import sys
from pathlib import Path

from ._archives import dist_info_files, field_values, metadata_text, write_sdist, write_wheel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "metadata_text",
    "prepare_metadata_for_build_wheel",
]

SOURCE = Path(__file__).parent.parent
"""The folder of the modules in the unpacked sdist."""


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:  # noqa: ARG001 (names are the standard's)
    """Return the build requirements, of which there are none."""
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:  # noqa: ARG001
    """Write the ``.dist-info`` folder of the wheel that `build_wheel` would build, and return its name."""
    name, files = dist_info_files(_root(), _module_name(), _decide()[0])
    for path, data in files.items():
        target = Path(metadata_directory, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return name


def build_wheel(
    wheel_directory: str,
    config_settings: Any = None,  # noqa: ARG001
    metadata_directory: str | None = None,  # noqa: ARG001
) -> str:
    """Write the wheel for this machine, and return its name."""
    metadata, added = _decide()
    return write_wheel(_root(), SOURCE / _module_name(), Path(wheel_directory), metadata, added)


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:  # noqa: ARG001
    """Recreate the sdist from its own files, and return its name."""
    return write_sdist(_root(), SOURCE, Path(sdist_directory), _module_name())


def _root() -> Path:
    """Return the folder that contains PKG-INFO, which is the folder of the modules or its parent."""
    return SOURCE if (SOURCE / "PKG-INFO").exists() else SOURCE.parent


def _module_name() -> str:
    """Return the module that the wheel installs, which is ``rocm_sdk`` or another name from the recipe."""
    return next(SOURCE.glob("*/_build_info.py")).parent.name


def _decide() -> tuple[str, dict[str, str]]:
    """Return METADATA and the text to append to files of the module, including the new ``_selection.py``.

    Exits with the reason if nothing suitable exists. pip and uv show standard error, to which an exit writes only this
    text. An exception would add a traceback.
    """
    module = _module_name()
    pkg_info = (_root() / "PKG-INFO").read_text(encoding="utf-8")
    align_version(SOURCE / module / "_build_info.py", pkg_info)
    build_info = importlib.import_module(f"{module}._build_info")
    chooser = importlib.import_module(f"{module}._select")
    system = importlib.import_module(f"{module}._system").System()
    own_facts = take_facts(build_info, system.platform, platform.machine()) + import_facts(build_info)
    name = build_info.PACKAGES["meta"]["dist"]
    try:
        selection = chooser.select(system)
        requires = chooser.choose_requires(selection, system.platform)
    except ValueError as e:
        sys.exit(f"{name}: {e}")
    if system.variable("ROCM_SDK_VERBOSE") == "1":
        sys.stderr.write(f"{name}: {selection.explanation}\n")
    extras = chooser.choose_extras(selection, system.platform)
    record = (
        '"""What was chosen when this package was installed, and why."""\n\n'
        f"FAMILIES = {list(selection.families)!r}\n"
        f"REASON = {selection.reason!r}\n"
        f"EXPLANATION = {selection.explanation!r}\n"
    )
    return metadata_text(pkg_info, requires, extras), {"_selection.py": record, "_build_info.py": own_facts}


def align_version(build_info: Path, pkg_info: str) -> None:
    """Write the version from PKG-INFO into the literals and requirements of ``_build_info.py``.

    Scripts that promote release candidates change only PKG-INFO.
    """
    text = build_info.read_text(encoding="utf-8")
    found = re.search(r"^VERSION = (['\"])(.*)\1$", text, re.MULTILINE)
    [new] = field_values(pkg_info, "Version")
    if found is None or found[2] == new:
        return
    old, old_public, new_public = re.escape(found[2]), re.escape(found[2].partition("+")[0]), new.partition("+")[0]
    text = text.replace(found[0], f"VERSION = {new!r}")
    text = re.sub(rf"=={old}(?=['\"])", f"=={new}", text)
    text = re.sub(rf"=={old_public}\+(?=[\w.]*\.is\.not\.in\.this\.release)", f"=={new_public}+", text)
    build_info.write_text(text, encoding="utf-8")


def take_facts(build_info: Any, platform: str, machine: str = "") -> str:
    """Set the values for a platform and machine in the module, and return lines that set them in a copy of its text.

    If the current platform is different, the copy uses the values for that platform, because installers also build
    wheels for other platforms here.
    """
    by_platform = getattr(build_info, "BY_PLATFORM", {})
    facts = {**by_platform.get(platform, {}), **by_platform.get(f"{platform} {machine}", {})}
    shared = {name: getattr(build_info, name) for name in facts}
    for name, value in facts.items():
        setattr(build_info, name, value)
    own = "".join(f"{name} = {value!r}\n" for name, value in facts.items())
    return own + _elsewhere(platform, shared, by_platform) if by_platform else own


def import_facts(build_info: Any) -> str:
    """Return lines that import the values for a platform's libraries from its core package, if the package has them."""
    module = getattr(build_info, "PLATFORM_FACTS", "")
    if not module:
        return ""
    lines = ["try:", f"    from {module} import COMMON_GPUS, LIBRARIES, OVERLAID, UNLOADABLE"]
    lines += ["except ImportError:  # the core package isn't installed", "    pass"]
    return "\n".join([*lines, ""])


def _elsewhere(platform: str, shared: dict[str, Any], by_platform: dict[str, Any]) -> str:
    """Return lines that use the values for the current platform if it isn't ``platform``."""
    lines = ["import sys", "", f"if sys.platform != {platform!r}:"]
    lines += [f"    {name} = {value!r}" for name, value in shared.items()]
    lines += ["    globals().update(BY_PLATFORM.get(sys.platform, {}))"]
    if any(" " in key for key in by_platform):
        lines += ["    from platform import machine", ""]
        lines += ["    globals().update(BY_PLATFORM.get(f'{sys.platform} {machine()}', {}))"]
    return "\n".join([*lines, ""])
