"""Whether planned files can be installed on Windows."""

from __future__ import annotations

import pytest

from rocwheel.distributions.formats.metadata.metadata import CoreMetadata
from rocwheel.distributions.formats.wheel import WheelName
from rocwheel.packages.plan import Member, PlannedWheel, TarEntry, TarMember, TextMember
from rocwheel.packages.planning.windows.paths import long_paths, windows_path_problems


def wheel(*paths: str, name: str = "core", folder: str = "", links: tuple[str, ...] = ()) -> PlannedWheel:
    members: list[Member] = [TextMember(path, "") for path in paths]
    members.append(TarMember("m/_devel.tar", "none", (), links))
    metadata = CoreMetadata(name, "1.0", "a package", ">=3.9")
    return PlannedWheel("core", WheelName(name, "1.0", "py3-none-win_amd64"), metadata, tuple(members), folder=folder)


def told(*wheels: PlannedWheel) -> list[str]:
    return [str(problem) for problem in windows_path_problems(wheels)]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        pytest.param("_core/.kpack/gfx90a:xnack+.kpack", "a colon", id="colon"),
        pytest.param("_core/aux.h", "device AUX", id="device"),
        pytest.param("_core/include./a.h", "ends with a dot", id="dot"),
        pytest.param("_core/a ", "ends with a blank", id="blank"),
        pytest.param(f"_core/{'a' * 140}/{'b' * 140}", "is a path of 287 characters; expected at most 236", id="long"),
    ],
)
def test_what_windows_refuses_is_named(path: str, said: str) -> None:
    [problem] = told(wheel("_core/fine.h", path))
    assert problem.startswith(f"{path}: ")
    assert said in problem


def test_names_in_the_devel_tree_count_too() -> None:
    assert told(wheel(links=("_devel/a:b",)))[0].startswith("_devel/a:b: ")
    tar = TarMember("m/_devel.tar", "none", (TarEntry("_devel/nul", 0o644),))
    one = PlannedWheel("devel", wheel().name, wheel().metadata, (tar,))
    assert told(one)[0].startswith("_devel/nul: ")


def test_names_that_differ_only_in_case_are_told_across_wheels() -> None:
    [problem] = told(wheel("_core/bin/A.dll"), wheel("_core/bin/a.dll", name="other"))
    assert problem == (
        "_core/bin/A.dll: differs from _core/bin/a.dll only in case: Windows has one file for both. "
        "Rename it, or leave it out by the recipe (leave-out)."
    )


def test_packages_of_different_families_are_never_installed_together() -> None:
    shared, one, other = wheel("_core/a"), wheel("_x/B", folder="gfx94X"), wheel("_x/b", folder="gfx110X")
    assert told(shared, one, other) == []
    assert len(told(shared, one, wheel("_X/b", "_core/A", folder="gfx110X"))) == 1


def test_a_path_that_leaves_little_to_site_packages_is_a_warning() -> None:
    long = "_core/" + "a" * 190
    [warning] = long_paths([[wheel("_core/short", long)]], 80)
    assert (warning.kind, warning.subject, warning.files) == ("long-path", "core-1.0-py3-none-win_amd64.whl", (long,))
    found = f"has 1 path that leave site-packages less than 80 characters; the longest leaves 62: {long}"
    assert warning.found == found
    assert list(long_paths([[wheel(long)]], 60)) == []
