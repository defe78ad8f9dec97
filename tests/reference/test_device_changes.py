"""Device packages that come and go: the development tree follows, nothing breaks, and nothing stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.reference.conftest import uninstall

if TYPE_CHECKING:
    from pathlib import Path

    from tests.reference.conftest import MakeEnvironment
    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow

TARGETS = ("gfx906", "gfx90a", "gfx1030")
USE = "import rocm_sdk; rocm_sdk.preload_libraries('hipsparse', 'hipblas'); print('used')"


def without_counterpart(environment: Installed) -> list[str]:
    """Return what the libraries' platform folder has and the development tree lacks, or has otherwise."""
    libraries = environment.site / "_rocm_sdk_libraries"
    names = [
        path.relative_to(libraries)
        for path in libraries.rglob("*")
        if path.is_file() and ".devel_links" not in path.parts and "__pycache__" not in path.parts
    ]
    assert len(names) > 10
    return [
        str(name)
        for name in names
        if not (environment.root / name).is_file()
        or (environment.root / name).read_bytes() != (libraries / name).read_bytes()
    ]


def device_files(environment: Installed) -> set[str]:
    """Return which targets the development tree has files of."""
    return {target for target in TARGETS for path in environment.root.rglob("*") if target in path.name}


def broken_links(environment: Installed) -> list[Path]:
    return [path for path in environment.root.rglob("*") if not path.exists()]


@pytest.mark.deep
@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_every_file_of_the_libraries_is_also_in_the_development_tree(
    dist: Path, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(dist, tool)
    environment.install("rocm[libraries,devel,device-gfx906]")
    environment.run("rocm-sdk", "init")
    assert without_counterpart(environment) == []
    environment.install("rocm[device-gfx1030,device-gfx90a]")
    environment.run("rocm-sdk", "init")
    assert without_counterpart(environment) == []
    assert device_files(environment) == set(TARGETS)


@pytest.mark.deep
@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_device_packages_can_come_and_go_in_any_order(dist: Path, make_environment: MakeEnvironment, tool: str) -> None:
    environment = make_environment(dist, tool)
    before = environment.files()
    environment.install("rocm[libraries,devel]")
    environment.run("rocm-sdk", "init")
    steps = ["+gfx1030", "+gfx906", "-gfx1030", "+gfx90a", "-gfx906", "+gfx1030", "-gfx90a", "-gfx1030"]
    installed: set[str] = set()
    for step in steps:
        target = step[1:]
        if step[0] == "+":
            environment.install(f"rocm[device-{target}]")
            installed.add(target)
        else:
            uninstall(environment, tool, f"rocm-sdk-device-{target}")
            installed.remove(target)
        assert environment.evaluate(USE) == "used", step
        environment.run("rocm-sdk", "init")
        assert (device_files(environment), broken_links(environment), without_counterpart(environment)) == (
            installed,
            [],
            [],
        ), step
    uninstall(environment, tool, *(name for name in environment.dists() if name.startswith("rocm")))
    assert environment.files() == before
