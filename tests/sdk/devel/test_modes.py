"""Permissions of the tree: who may use the packages may use it; places that can't be read or written."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.sdk.installed import read_only

if TYPE_CHECKING:
    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow


def run_privately(environment: Installed, *command: str) -> None:
    """Run a command of the environment under an umask that gives others nothing."""
    line = ["sh", "-c", 'umask 077; exec "$@"', "sh", str(environment.path / "bin" / command[0]), *command[1:]]
    subprocess.run(line, check=True, capture_output=True)


def modes(environment: Installed) -> dict[str, str]:
    paths = [
        path for path in environment.site.rglob("*") if not path.is_symlink() and path.parent.name != "__pycache__"
    ]
    return {path.relative_to(environment.site).as_posix(): f"{path.stat().st_mode & 0o7777:o}" for path in paths}


def test_the_tree_is_readable_by_users_of_the_packages_whatever_the_umask(environment: Installed) -> None:
    before = modes(environment)
    run_privately(environment, "rocm-sdk", "init")
    after = modes(environment)
    tree = {name: mode for name, mode in after.items() if name.startswith("_rocm_sdk_devel")}
    programs = {f"_rocm_sdk_devel/{name}" for name in ("libexec/tool", "bin/hipcc", "lib/llvm/bin/clang")}
    folders = {name for name in tree if (environment.site / name).is_dir()}
    assert tree == {name: "755" if name in programs | folders else "644" for name in tree}
    assert {name for name in before if name in after and before[name] != after[name]} == set()


def test_later_links_are_readable_by_users_of_the_packages(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    environment.install("rocm-sdk-device-gfx906")
    before = modes(environment)
    run_privately(environment, "rocm-sdk", "path", "--root")
    after = modes(environment)
    assert {name: after[name] for name in after if after[name] != before.get(name)} == {
        "_rocm_sdk_devel/.device-gfx906": "644",
        "_rocm_sdk_devel/.device_links": "755",
        "_rocm_sdk_devel/.device_links/gfx906.json": "644",
        "_rocm_sdk_devel/.kpack": "755",
        "_rocm_sdk_devel/.kpack/blas_lib_gfx906.kpack": "644",
        "_rocm_sdk_devel/lib/rocblas": "755",
        "_rocm_sdk_devel/lib/rocblas/library": "755",
        "_rocm_sdk_devel/lib/rocblas/library/kernels_gfx906.co": "644",
    }


def test_the_tree_belongs_to_the_group_that_maintains_the_packages(environment: Installed) -> None:
    (environment.site / "rocm_sdk_devel").chmod(0o2775)
    environment.run("rocm-sdk", "init")
    tree = modes(environment)
    assert tree["_rocm_sdk_devel/include/hip"] == "2775"
    assert tree["_rocm_sdk_devel/include/hip/hip, runtime.h"] == "664"


@pytest.mark.parametrize("closed", ["", ".expanded.json"], ids=["tree", "state"])
def test_an_unreadable_tree_is_reported(environment: Installed, closed: str) -> None:
    environment.run("rocm-sdk", "init")
    state = environment.root / ".expanded.json"
    remedy = f"As the owner of {environment.root}: chmod -R u+rwX,go+rX '{environment.root}'"
    message = f"{state}: the current user is not allowed to read this file. {remedy}\n"
    with read_only(environment) as prefix:
        (environment.root / closed).chmod(0)
        tools = [[*prefix, str(environment.path / "bin" / name)] for name in ("hipcc", "rocm-sdk", "rocminfo")]
        done = [
            subprocess.run([*tool, *arguments], capture_output=True, text=True, check=False)
            for tool, arguments in zip(tools, ([], ["path", "--root"], []), strict=True)
        ]
        (environment.root / closed).chmod(0o755)
    assert [(one.returncode, one.stderr) for one in done] == [
        (1, f"hipcc: {message}"),
        (1, f"rocm-sdk: error: {message}"),
        (0, ""),
    ]
    assert done[2].stdout == f"script {environment.site}/_rocm_sdk_core/bin\n"


def test_a_program_in_an_unreadable_folder_is_reported(environment: Installed) -> None:
    folder = environment.site / "_rocm_sdk_core/bin"
    with read_only(environment) as prefix:
        folder.chmod(0)
        command = [*prefix, str(environment.path / "bin/rocminfo")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        folder.chmod(0o755)
    assert (done.returncode, done.stderr) == (1, f"rocminfo: [Errno 13] Permission denied: '{folder}/rocminfo'\n")


def test_a_read_only_environment_is_explained(environment: Installed) -> None:
    with read_only(environment) as prefix:
        command = [*prefix, str(environment.path / "bin/hipcc"), "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        f"hipcc: The ROCm development files can't be expanded in {environment.site} (Permission denied: "
        f"{environment.site}/rocm_sdk_devel/__init__.py). Run `rocm-sdk init` once as a user with write access "
        "and with enough free space, before you use the files read-only.\n"
    )


def test_an_expanded_tree_works_in_a_read_only_environment(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    with read_only(environment) as prefix:
        command = [*prefix, str(environment.path / "bin/hipcc"), "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
