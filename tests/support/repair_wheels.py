"""Wheels to repair: a plugin with wrong and right files, and the SDK that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.libraries import Lib, build_tree
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["plugin_wheel", "sdk_wheel"]


@pytest.fixture
def sdk_wheel(tmp_path: Path) -> Path:
    """Return a wheel with two libraries of an SDK, the second in a folder of its own."""
    tree = build_tree(
        tmp_path / "sdk",
        Lib("lib/libamdhip64.so.7", ("librocm_sysdeps_drm.so.2",), "$ORIGIN/rocm_sysdeps/lib"),
        Lib("lib/rocm_sysdeps/lib/librocm_sysdeps_drm.so.2"),
    )
    files = {f"_rocm_sdk_core/{path.relative_to(tree)}": path for path in sorted(tree.rglob("*.so.*"))}
    return make_wheel(
        tmp_path / "sdk-dist", "rocm_sdk_core", files, version="7.1.2", tag="py3-none-manylinux_2_5_x86_64"
    )


@pytest.fixture
def plugin_wheel(tmp_path: Path) -> Path:
    """Return a wheel with one wrong library, one right one, and a tag that promises too little and too much."""
    tree = build_tree(
        tmp_path / "plugin",
        Lib(
            "_wrong.so", ("libamdhip64.so.7", "librocm_sysdeps_drm.so.2"), "$ORIGIN/../rocm/lib:local/lib:/opt/rocm/lib"
        ),
        Lib("_right.so", ("libhelp.so",), "$ORIGIN"),
        Lib("libhelp.so"),
    )
    files: dict[str, Path | bytes] = {f"plugin/{path.name}": path for path in sorted(tree.glob("*.so"))}
    files["plugin/__init__.py"] = b"answer = 42\n"
    return make_wheel(tmp_path / "dist", "plugin", files, is_purelib=True)
