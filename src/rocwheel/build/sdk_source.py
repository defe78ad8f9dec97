"""Provides the Python source of the SDK packages: the text files in ``rocwheel/sdk`` and a generated module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rocwheel
from rocwheel.build.plan import PlannedComponent

if TYPE_CHECKING:
    from collections.abc import Mapping

SDK_LICENSE = "MIT"
"""The SPDX expression for the SDK source itself."""

_SDK = Path(__file__).parents[1] / "sdk"

_DIST_INFO = '''\
"""Information about this package. Every other name comes from ``{sdk_module}._dist_info``."""

from importlib import import_module

__version__ = "{version}"
PY_PACKAGE_SUFFIX_NONCE = "{suffix}"


def __getattr__(name):
    """Return a value for the whole set of packages from ``{sdk_module}``, if that is installed."""
    if not name.startswith("__"):
        try:
            return getattr(import_module("{sdk_module}._dist_info"), name)
        except ModuleNotFoundError:
            pass
    msg = f"module {{__name__!r}} has no attribute {{name!r}}"
    raise AttributeError(msg)
'''


def sdk_module(name: str) -> dict[str, str]:
    """Return the files of an SDK module, keyed by relative path, such as ``_cli.py`` and ``tests/base_test.py``."""
    root = _SDK / name
    paths = sorted(root.rglob("*.py"))
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def sdk_license() -> str:
    """Return the license text of the SDK source itself."""
    return (_SDK / "LICENSE").read_text(encoding="utf-8")


def sdk_component(text: str) -> PlannedComponent:
    """Return the SDK source as a component of a package. ``text`` is the path of its license text in the package."""
    return PlannedComponent("rocwheel", "rocm_sdk", SDK_LICENSE, (text,), version=rocwheel.__version__)


def render_literals(values: Mapping[str, object]) -> str:
    """Return the source of a module that only assigns literals.

    Values are written with ``repr``, so that no name can be interpreted as code.
    """
    header = '"""Information about this build of the SDK, written by the packager."""\n\n'
    return header + "".join(f"{name} = {value!r}\n" for name, value in values.items())


def dist_info_module(version: str, suffix: str, sdk_module: str) -> dict[str, str]:
    """Return a package's ``_dist_info.py``.

    Scripts in the reference packages look there for information about the package set. The names of platform modules
    end with ``suffix``. ``sdk_module`` is the module that defines the other values.
    """
    return {"_dist_info.py": _DIST_INFO.format(version=version, suffix=suffix, sdk_module=sdk_module)}


def script_function(script: str) -> str:
    """Return the function name of a console script: ``+`` becomes ``p``, and other special characters become ``_``."""
    text = script.replace("+", "p")
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in text)
