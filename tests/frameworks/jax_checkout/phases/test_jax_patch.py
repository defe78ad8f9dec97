"""The patch for ``@jax``."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax_checkout.phases.jax_patch import jax_patch

if TYPE_CHECKING:
    from pathlib import Path

BUILD = """load("//jaxlib:jax.bzl", "nanobind_extension")

nanobind_extension(
    name = "_rnn",
    module_name = "_rnn",
)

nanobind_extension(
    name = "_other",
    module_name = "_other",
)
"""


def test_the_rules_of_the_modules_get_run_paths() -> None:
    assert jax_patch(BUILD, ["_rnn.so"], "jax_rocm7_plugin", "jax_rocm_plugin").splitlines() == [
        "--- a/jaxlib/rocm/BUILD",
        "+++ b/jaxlib/rocm/BUILD",
        "@@ -1,7 +1,10 @@",
        ' load("//jaxlib:jax.bzl", "nanobind_extension")',
        '+load("@jax_rocm_plugin//rocm_wheel:run_path.bzl", "wheel_run_path_linkopts")',
        " ",
        " nanobind_extension(",
        '     name = "_rnn",',
        '+    features = ["no_solib_rpaths"],',
        '+    linkopts = wheel_run_path_linkopts("jax_rocm7_plugin"),',
        '     module_name = "_rnn",',
        " )",
        " ",
    ]


@pytest.mark.parametrize(("level", "name"), [(0, "jaxlib/rocm/BUILD"), (2, "b/b/jaxlib/rocm/BUILD")])
def test_the_name_has_the_folders_that_the_workspace_strips(level: int, name: str) -> None:
    patch = jax_patch(BUILD, ["_rnn.so"], "jax_rocm7_plugin", "jax_rocm_plugin", level=level)
    assert patch.splitlines()[1] == f"+++ {name}"


@pytest.mark.parametrize("text", [BUILD.rstrip("\n"), f"# one page\x0c\n{BUILD}", BUILD.replace("\n", "\r\n")])
@pytest.mark.parametrize("tool", [("git", "apply", "-"), ("patch", "-p1", "--binary", "--force")])
def test_the_patch_fits_whatever_lines_end_with(text: str, tool: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "jaxlib/rocm/BUILD"
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode())
    patch = jax_patch(text, ["_other.so"], "jax_rocm7_plugin", "jax_rocm_plugin").encode()
    done = subprocess.run(tool, cwd=tmp_path, input=patch, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert b'wheel_run_path_linkopts("jax_rocm7_plugin")' in file.read_bytes()
    assert file.read_bytes().endswith(text[-2:].encode())


def test_a_module_that_nobody_links_is_told() -> None:
    with pytest.raises(InputError) as raised:
        jax_patch(BUILD, ["_rnn.so", "_linalg.so"], "jax_rocm7_plugin", "jax_rocm_plugin")
    assert str(raised.value) == (
        "@jax//jaxlib/rocm/BUILD: has no rule that links _linalg.so; expected one of nanobind_extension, "
        "pybind_extension, cc_binary for each"
    )
