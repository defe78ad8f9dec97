"""The search for the machine's interpreters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts.find_python import find_python

pytestmark = pytest.mark.slow


def test_a_pyenv_interpreter_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    (tmp_path / "versions").mkdir()
    (tmp_path / f"versions/{version}.99").symlink_to(sys.base_prefix)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_python(version) == Path(sys.base_prefix, f"bin/python{version}").resolve()


def test_an_unavailable_version_returns_none() -> None:
    assert find_python("3.2") is None
