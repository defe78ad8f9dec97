"""One selector for several machines of a platform."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.build.merging.merge import merge_selectors
from rocwheel.build.planning.options import PlanOptions
from rocwheel.core.errors import InputError
from rocwheel.sdk.selector import take_facts
from tests.build.merging.selectors import facts_of, on_machine, windows, write_selector

if TYPE_CHECKING:
    from pathlib import Path


def merged(tmp_path: Path, *paths: Path) -> dict[str, Any]:
    merge_selectors(paths, tmp_path / "merged")
    return facts_of(tmp_path / "merged/rocm-7.0.0.tar.gz")


def builds(tmp_path: Path) -> list[Path]:
    return [
        write_selector(tmp_path / "x86", "gfx942", "gfx1100"),
        write_selector(tmp_path / "arm", "gfx942", "gfx90a", change=on_machine("aarch64")),
        write_selector(tmp_path / "win", "gfx1100", change=windows),
    ]


def test_gpus_available_on_one_machine_get_a_machine_marker(tmp_path: Path) -> None:
    info = merged(tmp_path, *builds(tmp_path))
    assert (info["PLATFORMS"], info["MACHINES"]) == (
        ["linux", "win32"],
        {"linux": ["aarch64", "x86_64"], "win32": ["AMD64"]},
    )
    extras = info["EXTRAS"]
    assert extras["libraries"] == [["rocm-sdk-libraries==7.0.0", ""]]
    assert [extras[f"device-{target}"][0][1] for target in ("gfx90a", "gfx942", "gfx1100")] == [
        "sys_platform == 'linux' and platform_machine == 'aarch64'",
        "sys_platform == 'linux'",
        "sys_platform == 'linux' and platform_machine == 'x86_64' or sys_platform == 'win32'",
    ]
    assert info["FAMILIES"]["gfx90a"] == {"targets": ["gfx90a"], "platforms": ["linux"]}


@pytest.mark.parametrize(
    ("platform", "machine", "families"),
    [
        ("linux", "x86_64", ["gfx942", "gfx1100"]),
        ("linux", "aarch64", ["gfx90a", "gfx942"]),
        ("win32", "AMD64", ["gfx1100"]),
    ],
)
def test_a_machine_chooses_only_its_own_gpus(tmp_path: Path, platform: str, machine: str, families: list[str]) -> None:
    build_info = SimpleNamespace(**merged(tmp_path, *builds(tmp_path)))
    take_facts(build_info, platform, machine)
    assert [name for name, row in build_info.FAMILIES.items() if platform in row["platforms"]] == families


def test_a_wheel_uses_the_facts_of_the_machine_where_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = merged(tmp_path, *builds(tmp_path))
    added = take_facts(SimpleNamespace(**there), "win32", "AMD64")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    exec(added, there)
    assert [name for name, row in there["FAMILIES"].items() if "linux" in row["platforms"]] == ["gfx90a", "gfx942"]


def test_machines_with_the_same_gpus_need_no_markers(tmp_path: Path) -> None:
    one = write_selector(tmp_path / "one", "gfx942")
    two = write_selector(tmp_path / "two", "gfx942", change=on_machine("aarch64"))
    info = merged(tmp_path, one, two)
    assert info["MACHINES"] == {"linux": ["aarch64", "x86_64"]}
    assert {**facts_of(one), "MACHINES": 0, "BY_PLATFORM": {}} == {**info, "MACHINES": 0}


def test_a_selector_merged_for_several_machines_can_be_merged_again(tmp_path: Path) -> None:
    x86, arm, win = builds(tmp_path)
    at_once = merged(tmp_path / "once", x86, arm, win)
    merged(tmp_path / "first", arm, x86)
    assert merged(tmp_path / "twice", tmp_path / "first/merged/rocm-7.0.0.tar.gz", win) == at_once


@pytest.mark.parametrize(
    ("tag", "machines"),
    [
        (None, {"linux": ["x86_64"]}),
        ("manylinux_2_28_aarch64", {"linux": ["aarch64"]}),
        ("win_amd64", {"win32": ["AMD64"]}),
        ("manylinux_2_28_x86_64.musllinux_1_2_x86_64", {"linux": ["x86_64"]}),
        ("any", {"linux": []}),
    ],
)
def test_the_platform_and_machine_of_a_build_come_from_its_tag(
    tmp_path: Path, tag: str | None, machines: dict[str, list[str]]
) -> None:
    info = facts_of(write_selector(tmp_path, "gfx942", options=PlanOptions(version="7.0.0", platform_tag=tag)))
    assert (info["MACHINES"], info["PLATFORMS"], info["FAMILIES"]["gfx942"]["platforms"]) == (
        machines,
        list(machines),
        list(machines),
    )


def test_a_family_with_two_gpu_lists_on_one_platform_is_refused(tmp_path: Path) -> None:
    def families(**rows: list[str]) -> dict[str, Any]:
        named = {name: {"targets": targets, "platforms": ["linux"]} for name, targets in rows.items()}
        return {"LAYOUT": "per-family", "FAMILIES": named}

    one = write_selector(tmp_path / "one", "gfx942", change=lambda _: families(gfx94=["gfx942"]))
    two = write_selector(
        tmp_path / "two", "gfx942", change=lambda _: families(gfx94=["gfx940", "gfx942"], gfx95=["gfx950"])
    )
    with pytest.raises(InputError) as caught:
        merge_selectors([two, one], tmp_path / "merged")
    assert str(caught.value) == (
        f"{two}: has FAMILIES['gfx94'] = ['gfx940', 'gfx942']; expected ['gfx942'], as in {one}. "
        "Rebuild all of them from the same release."
    )


def test_an_extra_that_requires_two_versions_is_refused(tmp_path: Path) -> None:
    def other(info: dict[str, Any]) -> dict[str, Any]:
        return {"EXTRAS": {**info["EXTRAS"], "libraries": [["rocm-sdk-libraries==7.0.1", ""]]}}

    one = write_selector(tmp_path / "one", "gfx942")
    two = write_selector(tmp_path / "two", "gfx1100", change=other)
    with pytest.raises(InputError) as caught:
        merge_selectors([one, two], tmp_path / "merged")
    assert str(caught.value) == (
        f"{one}: has EXTRAS['libraries: rocm-sdk-libraries'] = '==7.0.0'; expected '==7.0.1', as in {two}. "
        "Rebuild all of them from the same release."
    )
