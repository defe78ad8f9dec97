"""Tests of what the build of an sdist requires."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.distributions.formats.requirements.build_requires import read_build_requires
from tests.support.sdists import write_sdist

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'[build-system]\nrequires = ["setuptools>=61", "wheel"]\n', ("setuptools>=61", "wheel")),
        (b"[build-system]\nrequires = []\n", ()),
        (b"[project]\nname = 'x'\n", ("setuptools>=40.8.0",)),
        (None, ("setuptools>=40.8.0",)),
    ],
    ids=["setuptools", "nothing", "no table", "no file"],
)
def test_a_build_requires_what_its_project_says(tmp_path: Path, text: bytes | None, expected: tuple[str, ...]) -> None:
    path = write_sdist(tmp_path, "x-1.0", {"PKG-INFO": b"", **({"pyproject.toml": text} if text else {})})
    assert read_build_requires(path) == expected


@pytest.mark.parametrize(
    "text",
    [b"[", b"\xff", b"[build-system]\nrequires = 'x'\n", b"[build-system]\nrequires = [1]\n", b"build-system = 1\n",
     b"x = " + b"[" * 100_000],
)  # fmt: skip
def test_what_cannot_be_read_is_named(tmp_path: Path, text: bytes) -> None:
    path = write_sdist(tmp_path, "x-1.0", {"pyproject.toml": text})
    with pytest.raises(
        InputError, match=r"x-1\.0\.tar\.gz!pyproject\.toml: can't be read \(.*\); expected that of PEP 518"
    ):
        read_build_requires(path)
