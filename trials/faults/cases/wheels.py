"""Wheels are repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.libraries import Lib, build_tree
from tests.support.wheels import make_wheel
from trials.faults.case import Case

if TYPE_CHECKING:
    from pathlib import Path

    from trials.faults.case import Place

__all__ = ["CASES"]


def _prepare(place: Place) -> None:
    """Make a plugin that needs a library of an SDK and has a wrong run path, and that SDK."""
    sdk = build_tree(place.root / "sdk", Lib("lib/libamdhip64.so.7"))
    files = {"_rocm_sdk_core/lib/libamdhip64.so.7": sdk / "lib/libamdhip64.so.7"}
    make_wheel(place.given, "rocm_sdk_core", files, version="7.1.2", tag="py3-none-manylinux_2_5_x86_64")
    plugin = build_tree(place.root / "plugin", Lib("_wrong.so", ("libamdhip64.so.7",), "local/lib:/opt/rocm/lib"))
    make_wheel(place.given, "plugin", {"plugin/_wrong.so": plugin / "_wrong.so", "plugin/__init__.py": b""})


def _repair(place: Place) -> tuple[str | Path, ...]:
    [wheel] = place.given.glob("plugin-*.whl")
    [sdk] = place.given.glob("rocm_sdk_core-*.whl")
    return ("repair", wheel, "--with", sdk, "--output", place.out)


CASES = (Case("repair", _repair, _prepare),)
