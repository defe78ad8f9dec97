"""What is audited together: wheels for several Pythons, and environments with and without their SDK."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.rules import ALL_RULES
from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.demo import SAMPLE_SDK
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = [pytest.mark.slow, needs_compiler, pytest.mark.usefixtures("in_an_empty_folder")]


def test_wheels_for_several_pythons_in_one_folder_are_audited_together(run: Run, tmp_path: Path) -> None:
    built = build_tree(tmp_path / "tree", Lib("a.so", ("libb.so",), "$ORIGIN"), Lib("libb.so"))
    files: dict[str, Path | bytes] = {f"demo/{name}": built / name for name in ("a.so", "libb.so")}
    for python in ("cp311", "cp312"):
        make_wheel(tmp_path / "dist", "demo", files, tag=f"{python}-{python}-manylinux_2_5_x86_64")
    make_wheel(tmp_path / "dist", "more", {"more/__init__.py": b""}, tag="py3-none-any", requires=("demo==1.0",))
    finished = run("audit", "dist", "--with", tmp_path / "dist")
    rules = len(ALL_RULES)
    assert (finished.status, finished.stdout) == (
        0,
        f"17 files, 4 of them programs and libraries; {rules} rules: 0 errors, 0 warnings, 0 notes\n",
    )


def install(site: Path, *wheels: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, *map(str, wheels)], check=True)
    return site


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return an environment with a package that needs HIP, and one that has nothing to do with it."""
    built = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7",), "$ORIGIN/../_rocm_sdk_core/lib"))
    tag = "py3-none-manylinux_2_5_x86_64"
    wheels = [
        make_wheel(tmp_path / "dist", "demo", {"demo/a.so": built / "a.so"}, tag=tag, requires=("rocm-sdk-core",)),
        make_wheel(
            tmp_path / "dist", "more", {"more/x.py": b""}, tag="py3-none-any", requires=("absent; extra == 'x'",)
        ),
    ]
    return install(tmp_path / "site", *wheels)


def test_an_sdk_missing_from_an_environment_is_reported(run: Run, environment: Path) -> None:
    finished = run("audit", environment)
    assert finished.status == 1
    assert "needs libamdhip64.so.7, but its package rocm-sdk-core isn't installed" in finished.stdout
    assert "-> Install rocm-sdk-core, or add it with --with." in finished.stdout
    assert finished.stdout.endswith(" rules: 1 error, 0 warnings, 0 notes\n")


def test_an_sdk_may_be_installed_into_an_environment_later(run: Run, environment: Path, tmp_path: Path) -> None:
    assert run("audit", environment, "--no-closed").status == 0
    coming = make_wheel(
        tmp_path / "coming", "third", {"third/x.py": b""}, tag="py3-none-any", requires=("rocm-sdk-core",)
    )
    assert run("audit", environment, coming).status == 0
    (tmp_path / "pyproject.toml").write_text("[tool.rocwheel.audit]\nclosed = false\n")
    assert run("audit", environment).status == 0


def test_a_package_about_to_be_installed_may_bring_an_sdk(run: Run, environment: Path, tmp_path: Path) -> None:
    (wheel,) = tmp_path.glob("dist/demo-*.whl")
    assert run("audit", wheel, "--with", environment).status == 0
    assert run("audit", wheel, "--closed").status == 1
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
    assert run("audit", tmp_path / "unpacked").status == 0


def test_an_environment_with_its_sdk_has_no_findings(run: Run, environment: Path, tmp_path: Path) -> None:
    BuildJob(PlanJob(SAMPLE_SDK), tmp_path / "made").run()
    (core,) = tmp_path.glob("made/dist/rocm_sdk_core-*.whl")
    assert run("audit", environment, "--with", core).status == 0
    install(environment, core)
    finished = run("audit", environment)
    assert finished.stdout.endswith(" rules: 0 errors, 0 warnings, 0 notes\n")


def test_packages_built_from_the_sample_sdk_have_no_findings(run: Run, tmp_path: Path) -> None:
    BuildJob(PlanJob(SAMPLE_SDK), tmp_path / "made").run()
    finished = run("audit", tmp_path / "made/dist")
    assert finished.status == 0
    assert finished.stdout.endswith(f"{len(ALL_RULES)} rules: 0 errors, 0 warnings, 0 notes\n")


def test_the_artifacts_of_the_sample_sdk_have_no_findings_when_audited(run: Run) -> None:
    finished = run("audit", SAMPLE_SDK)
    assert finished.stdout.endswith(f"{len(ALL_RULES)} rules: 0 errors, 0 warnings, 0 notes\n")
