"""Tests of `rocwheel.environment.about`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.environment.about import Prefix, read_about

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_prefixes_come_from_environment_variables_and_the_default(tmp_path: Path) -> None:
    # Given ROCM_PATH with a version, HIP_PATH to nowhere, and no /opt/rocm
    (tmp_path / "rocm/.info").mkdir(parents=True)
    (tmp_path / "rocm/.info/version").write_text("7.1.0-42\n")
    environ = {"ROCM_PATH": str(tmp_path / "rocm"), "HIP_PATH": str(tmp_path / "none"), "HOME": "/root"}
    found = read_about(environ, root=tmp_path)
    # Then each is named with what is there
    assert found.prefixes == (
        Prefix("ROCM_PATH", str(tmp_path / "rocm"), True, "7.1.0-42"),
        Prefix("HIP_PATH", str(tmp_path / "none"), False, ""),
        Prefix("default", str(tmp_path / "opt/rocm"), False, ""),
    )
    assert found.environment == {"HIP_PATH": str(tmp_path / "none"), "ROCM_PATH": str(tmp_path / "rocm")}


def test_installed_rocm_packages_are_listed_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, version in (("rocm", "7.0.0"), ("rocm_sdk_core", "7.0.0"), ("rocmlike", "1")):
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert read_about({}, root=tmp_path).rocm_packages == {"rocm": "7.0.0", "rocm_sdk_core": "7.0.0"}
