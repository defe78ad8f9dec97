"""A checkout of rocm-jax's kind, made once and copied for each test."""

from __future__ import annotations

import shutil
from pathlib import Path  # noqa: TC003 (msgspec reads the annotation)

import msgspec
import pytest

from tests.support.rocm_jax_checkout import RocmJaxCheckout, make_rocm_jax_checkout


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> RocmJaxCheckout:
    return make_rocm_jax_checkout(tmp_path_factory.mktemp("original"))


@pytest.fixture
def rocm_jax(original: RocmJaxCheckout, tmp_path: Path) -> RocmJaxCheckout:
    """Return a copy of the checkout; the repositories are the same, and nobody writes to them."""
    shutil.copytree(original.folder, tmp_path / "rocm-jax")
    return msgspec.structs.replace(original, folder=tmp_path / "rocm-jax")
