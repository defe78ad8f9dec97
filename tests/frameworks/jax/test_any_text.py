"""Damaged files of a checkout: a migration that is a no-op the second time, or a clear error, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.frameworks.jax.callers import Plan
from rocwheel.frameworks.jax.checkout import JAX_BUILD, Checkout, find_structure, read_source
from rocwheel.frameworks.jax.editing import Draft, render_patch
from rocwheel.frameworks.jax.migrate import run_phases
from tests.support.example_counts import examples
from tests.support.places import FIXTURES

ROOT = FIXTURES / "rocm_jax"
FILES = {
    path.relative_to(ROOT / "checkout").as_posix(): path.read_bytes()
    for path in sorted((ROOT / "checkout").rglob("*"))
    if path.is_file()
}
DAMAGED = [
    "jax_rocm_plugin/.bazelrc",
    "jax_rocm_plugin/Makefile",
    "jax_rocm_plugin/WORKSPACE",
    "jax_rocm_plugin/jaxlib_ext/tools/BUILD.bazel",
    "jax_rocm_plugin/pjrt/BUILD",
    "jax_rocm_plugin/pjrt/python/BUILD.bazel",
    "jax_rocm_plugin/pjrt/tools/BUILD.bazel",
    "jax_rocm_plugin/third_party/jax/workspace.bzl",
    ".github/workflows/build-wheels.yml",
    "ci/jax_rbe/pr_test.sh",
    "docker/Dockerfile.manylinux",
]
PIECES = [
    "",
    "\n",
    "\n\n",
    "\\\n",
    " ",
    "\t",
    '"',
    "'",
    "(",
    ")",
    "]",
    ",",
    "#",
    "é",
    "\r\n",
    "\r",
    "\0",
    "build.py",
    "[",
    "**x",
]


def migrated(files: dict[str, bytes]) -> Draft:
    """Return the checkout after all phases."""
    checkout = Checkout({path: read_source(data) for path, data in files.items()})
    draft = Draft(checkout)
    structure = find_structure(checkout, "checkout")
    run_phases(Plan(draft, structure, {"BUILD.bazel": ""}, 'rocm_wheel_repository(name = "r")\n', jax_build()))
    return draft


def jax_build() -> str:
    return (ROOT / "jax" / JAX_BUILD).read_text()


@given(
    path=st.sampled_from(DAMAGED),
    place=st.floats(0, 1),
    length=st.sampled_from([0, 0, 1, 2, 10, 100]),
    piece=st.sampled_from(PIECES),
)
@example(path=".github/workflows/build-wheels.yml", place=0.75, length=0, piece='"')
@example(path="ci/jax_rbe/pr_test.sh", place=0.0, length=0, piece='"')
@settings(max_examples=examples(60), deadline=None)
def test_damage_gives_an_error_or_a_migration_that_is_done_once(
    path: str, place: float, length: int, piece: str
) -> None:
    data = FILES[path]
    start = int(place * len(data))
    files = {**FILES, path: data[:start] + piece.encode() + data[start + length :]}
    try:
        once = migrated(files)
    except (InputError, ProblemsError) as e:
        assert str(e)  # noqa: PT017 (either way is right)
        return
    render_patch(once.changes())
    again = migrated({name: file.data for name, file in once.checkout.files.items()})
    assert [(edit.path, edit.reason) for edit in again.edits] == []


@pytest.mark.parametrize("path", DAMAGED)
def test_an_empty_file_gives_an_error_or_a_migration(path: str) -> None:
    try:
        assert list(migrated({**FILES, path: b""}).changes())
    except (InputError, ProblemsError) as e:
        assert path in str(e)  # noqa: PT017 (either way is right)
