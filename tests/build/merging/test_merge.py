"""Tests of `rocwheel.build.merging.merge`."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.build.merging.merge import merge_selectors
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.promoting.kept_targets import KeptTargets
from rocwheel.build.promoting.versions import VersionChange
from rocwheel.build.sdk_source import render_literals
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.wheels.sdist import read_sdist, write_sdist
from tests.build.merging.selectors import BUILD_INFO, facts_of, windows, write_selector
from tests.build.selectors import literals
from tests.support.example_counts import examples


def merged(tmp_path: Path, *paths: Path, default_family: str = "") -> dict[str, Any]:
    result = merge_selectors(paths, tmp_path / "merged", default_family=default_family)
    assert result.path == str(tmp_path / "merged/rocm-7.0.0.tar.gz")
    return facts_of(tmp_path / "merged/rocm-7.0.0.tar.gz")


def test_a_selector_for_other_gpus_is_not_overwritten(tmp_path: Path) -> None:
    first = write_selector(tmp_path / "first", "gfx906", "gfx942")
    second = write_selector(tmp_path / "second", "gfx942", "gfx1030")
    before = first.read_bytes()
    with pytest.raises(InputError) as caught:
        merge_selectors([second], first.parent)
    assert str(caught.value) == (
        f"{first}: already exists and also supports gfx906 (linux), which would be lost. "
        "Also merge the builds of the existing selector, or choose a different --output."
    )
    assert first.read_bytes() == before


def test_a_selector_for_fewer_gpus_is_overwritten(tmp_path: Path) -> None:
    paths = [write_selector(tmp_path / gpu, gpu) for gpu in ("gfx906", "gfx1030")]
    merged(tmp_path, *paths[:1])
    assert [*merged(tmp_path, *paths)["FAMILIES"]] == ["gfx906", "gfx1030"]


def test_a_file_that_is_not_a_selector_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "merged").mkdir()
    (tmp_path / "merged/rocm-7.0.0.tar.gz").write_text("mine")
    with pytest.raises(
        InputError, match=r"already exists, but is not a readable selector\. Remove the file, or choose a different"
    ):
        merged(tmp_path, write_selector(tmp_path / "first", "gfx906"))


def test_all_platforms_keep_all_their_gpus_with_markers(tmp_path: Path) -> None:
    linux = write_selector(tmp_path / "linux", "gfx942", "gfx1100")
    win = write_selector(tmp_path / "win", "gfx1100", "gfx1151", change=windows)
    info = merged(tmp_path, linux, win)
    assert info["PLATFORMS"] == ["linux", "win32"]
    assert info["FAMILIES"] == {
        "gfx942": {"targets": ["gfx942"], "platforms": ["linux"]},
        "gfx1100": {"targets": ["gfx1100"], "platforms": ["linux", "win32"]},
        "gfx1151": {"targets": ["gfx1151"], "platforms": ["win32"]},
    }
    extras = info["EXTRAS"]
    assert extras["libraries"] == [["rocm-sdk-libraries==7.0.0", ""]]
    assert extras["device-gfx942"] == [["rocm-sdk-device-gfx942==7.0.0", "sys_platform == 'linux'"]]
    assert extras["device-gfx1100"] == [["rocm-sdk-device-gfx1100==7.0.0", ""]]
    assert extras["device-gfx1151"] == [["rocm-sdk-device-gfx1151==7.0.0", "sys_platform == 'win32'"]]
    assert extras["device-all"] == [
        ["rocm-sdk-device-gfx942==7.0.0", "sys_platform == 'linux'"],
        ["rocm-sdk-device-gfx1100==7.0.0", ""],
        ["rocm-sdk-device-gfx1151==7.0.0", "sys_platform == 'win32'"],
    ]
    refusal = "rocm-sdk-core==7.0.0+gfx906.is.not.in.this.release.which.has.gfx942.gfx1100.gfx1151"
    assert extras["device-gfx906"] == [[refusal, ""]]


def test_builds_for_one_platform_keep_all_their_gpus_without_markers(tmp_path: Path) -> None:
    one = write_selector(tmp_path / "one", "gfx942")
    two = write_selector(tmp_path / "two", "gfx1100")
    info = merged(tmp_path, one, two)
    together = facts_of(write_selector(tmp_path / "together", "gfx942", "gfx1100"))
    assert {**info, "BY_PLATFORM": None} == {**together, "BY_PLATFORM": None}
    assert info["BY_PLATFORM"] == {}


def test_the_order_and_the_location_of_selectors_do_not_change_the_bytes(tmp_path: Path) -> None:
    paths = [
        write_selector(tmp_path / "a", "gfx942"),
        write_selector(tmp_path / "b", "gfx1100"),
        write_selector(tmp_path / "c", "gfx1100", "gfx1151", change=windows),
    ]
    results = set()
    for number, order in enumerate(itertools.permutations(paths)):
        result = merge_selectors(order, tmp_path / f"{number}")
        results.add(((tmp_path / f"{number}/rocm-7.0.0.tar.gz").read_bytes(), result.merged))
    assert len(results) == 1


def test_a_merged_selector_can_be_merged_again(tmp_path: Path) -> None:
    parts = [
        write_selector(tmp_path / "a", "gfx942"),
        write_selector(tmp_path / "b", "gfx1100"),
        write_selector(tmp_path / "c", "gfx1100", "gfx1151", change=windows),
    ]
    at_once = merged(tmp_path / "once", *parts)
    first = tmp_path / "first/merged/rocm-7.0.0.tar.gz"
    merged(tmp_path / "first", parts[2], parts[0])
    assert merged(tmp_path / "twice", first, parts[1]) == at_once


def test_a_selector_given_twice_counts_once(tmp_path: Path) -> None:
    one = write_selector(tmp_path / "one", "gfx942")
    other = write_selector(tmp_path / "other", "gfx942")
    result = merge_selectors([one, other, one], tmp_path / "merged")
    assert len(result.merged) == 1
    assert facts_of(tmp_path / "merged/rocm-7.0.0.tar.gz")["FAMILIES"] == facts_of(one)["FAMILIES"]


def test_facts_that_differ_between_platforms_are_stored_by_platform(tmp_path: Path) -> None:
    linux = write_selector(tmp_path / "linux", "gfx942")
    win = write_selector(tmp_path / "win", "gfx1151", change=windows)
    info = merged(tmp_path, win, linux)
    assert info["LIBRARIES"] == facts_of(linux)["LIBRARIES"]
    assert info["BY_PLATFORM"] == {"win32": {"LIBRARIES": facts_of(win)["LIBRARIES"]}}


def test_a_gpu_may_be_served_by_different_packages_on_each_platform(tmp_path: Path) -> None:
    def serving(info: dict[str, Any]) -> dict[str, Any]:
        rows = {name: {**row, "targets": ["gfx1030", "gfx1031"]} for name, row in info["FAMILIES"].items()}
        return {"FAMILIES": rows, "EXTRAS": {**info["EXTRAS"], "device-gfx1031": info["EXTRAS"]["device-gfx1030"]}}

    linux = write_selector(tmp_path / "linux", "gfx1030", change=serving)
    win = write_selector(tmp_path / "win", "gfx1030", change=windows)
    info = merged(tmp_path, linux, win)
    assert info["FAMILIES"]["gfx1030"] == {"targets": ["gfx1030", "gfx1031"], "platforms": ["linux", "win32"]}
    assert info["BY_PLATFORM"]["win32"]["FAMILIES"] == {
        "gfx1030": {"targets": ["gfx1030"], "platforms": ["linux", "win32"]}
    }
    assert info["EXTRAS"]["device-gfx1031"] == [["rocm-sdk-device-gfx1030==7.0.0", "sys_platform == 'linux'"]]


def test_a_dedicated_package_for_a_gpu_is_preferred_over_a_compatible_package(tmp_path: Path) -> None:
    def serving(info: dict[str, Any]) -> dict[str, Any]:
        rows = {name: {**row, "targets": ["gfx1030", "gfx1031"]} for name, row in info["FAMILIES"].items()}
        return {"FAMILIES": rows, "EXTRAS": {**info["EXTRAS"], "device-gfx1031": info["EXTRAS"]["device-gfx1030"]}}

    one = write_selector(tmp_path / "one", "gfx1030", change=serving)
    two = write_selector(tmp_path / "two", "gfx1031")
    info = merged(tmp_path, one, two)
    assert info["FAMILIES"]["gfx1030"]["targets"] == ["gfx1030"]
    assert info["EXTRAS"]["device-gfx1031"] == [["rocm-sdk-device-gfx1031==7.0.0", ""]]


def test_requires_txt_lists_the_same_requirements(tmp_path: Path) -> None:
    linux = write_selector(tmp_path / "linux", "gfx942")
    win = write_selector(tmp_path / "win", "gfx1151", change=windows)
    merged(tmp_path, win, linux)
    text = read_sdist(tmp_path / "merged/rocm-7.0.0.tar.gz")["src/rocm.egg-info/requires.txt"].decode()
    assert "\n[device-gfx942]\n\n[device-gfx942:sys_platform == 'linux']\nrocm-sdk-device-gfx942==7.0.0\n" in text


@pytest.mark.parametrize(("defaults", "expected"), [
    (("gfx942", ""), "gfx942"),
    (("gfx942", "gfx942"), "gfx942"),
    (("", ""), ""),
])  # fmt: skip
def test_an_explicit_default_is_kept(tmp_path: Path, defaults: tuple[str, str], expected: str) -> None:
    one, two = (
        write_selector(tmp_path / str(number), *targets, change=partial(_with_default, default))
        for number, (targets, default) in enumerate(
            zip((("gfx942", "gfx1100"), ("gfx942", "gfx1151")), defaults, strict=True)
        )
    )
    assert merged(tmp_path, one, two)["DEFAULT_FAMILY"] == expected


def _with_default(default: str, _: dict[str, Any]) -> dict[str, Any]:
    return {"DEFAULT_FAMILY": default}


def test_an_implicit_default_is_dropped_when_there_are_several_families(tmp_path: Path) -> None:
    one, two = write_selector(tmp_path / "one", "gfx942"), write_selector(tmp_path / "two", "gfx1100")
    assert facts_of(one)["DEFAULT_FAMILY"] == "gfx942"
    assert merged(tmp_path, one, two)["DEFAULT_FAMILY"] == ""
    assert merged(tmp_path / "other", one, two, default_family="gfx1100")["DEFAULT_FAMILY"] == "gfx1100"


def test_builds_of_different_versions_are_refused(tmp_path: Path) -> None:
    one = write_selector(tmp_path / "one", "gfx942")
    two = write_selector(tmp_path / "two", "gfx1100", options=PlanOptions(version="7.0.1"))
    with pytest.raises(InputError) as caught:
        merge_selectors([two, one], tmp_path / "merged")
    assert str(caught.value) == (
        f"{one}: is rocm 7.0.0; expected rocm 7.0.1, as in {two}. Merge selectors with the same version."
    )
    assert not (tmp_path / "merged").exists()


def _renamed(info: dict[str, Any]) -> dict[str, Any]:
    core = {**info["PACKAGES"]["core"], "dist": "other-core"}
    return {"PACKAGES": {**info["PACKAGES"], "core": core}, "SELECTED": {"device": "other-device-{family}==7.0.0"}}


def test_builds_with_other_names_are_refused_with_all_differences(tmp_path: Path) -> None:
    one = write_selector(tmp_path / "one", "gfx942")
    two = write_selector(tmp_path / "two", "gfx1100", change=_renamed)
    with pytest.raises(ProblemsError) as caught:
        merge_selectors([one, two], tmp_path / "merged")
    core = {"dist": "rocm-sdk-core", "module": "rocm_sdk_core", "platform_module": "_rocm_sdk_core"}
    assert [
        (problem.source, problem.found) for problem in caught.value.problems if isinstance(problem, InputError)
    ] == [
        (one, f"has PACKAGES['core'] = {core!r}"),
        (one, "has SELECTED['device'] = 'rocm-sdk-device-{family}==7.0.0'"),
    ]


def test_selectors_from_other_rocwheel_releases_are_refused(tmp_path: Path) -> None:
    one = write_selector(tmp_path / "one", "gfx942")
    two = write_selector(tmp_path / "two", "gfx1100", files={"src/rocm_sdk/_cli.py": "pass\n"})
    with pytest.raises(
        InputError, match=r"differs from .* in these files: src/rocm_sdk/_cli\.py; expected selectors from the same"
    ):
        merge_selectors([one, two], tmp_path / "merged")


def test_conflicting_defaults_are_refused(tmp_path: Path) -> None:
    one = write_selector(tmp_path / "one", "gfx942", "gfx906", change=lambda _: {"DEFAULT_FAMILY": "gfx906"})
    two = write_selector(tmp_path / "two", "gfx942", "gfx1100", change=lambda _: {"DEFAULT_FAMILY": "gfx1100"})
    with pytest.raises(InputError, match=r"have several defaults: gfx1100 in .*; gfx906 in .* Choose one with"):
        merge_selectors([one, two], tmp_path / "merged")
    assert merged(tmp_path, one, two, default_family="gfx942")["DEFAULT_FAMILY"] == "gfx942"


def test_a_default_without_packages_is_refused(tmp_path: Path) -> None:
    one = write_selector(tmp_path / "one", "gfx942")
    with pytest.raises(InputError, match=r"--default-family: 'gfx1100' has no packages; expected one of gfx942"):
        merge_selectors([one], tmp_path / "merged", default_family="gfx1100")


def test_the_output_never_overwrites_an_input_selector(tmp_path: Path) -> None:
    one, two = write_selector(tmp_path / "one", "gfx942"), write_selector(tmp_path / "two", "gfx1100")
    before = one.read_bytes()
    with pytest.raises(InputError, match="is one of the selectors to merge"):
        merge_selectors([one, two], tmp_path / "one")
    assert one.read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"LIBRARIES": 5}, "has an invalid LIBRARIES (Expected `object`, got `int`)"),
        ({"FAMILIES": {"gfx942": {"targets": ["gfx942"]}}}, "has an invalid FAMILIES"),
        ({"SELECTED": None}, "has an invalid SELECTED"),
        ({"BY_PLATFORM": {"linux": {"FAMILIES": {"a": {}}}}}, "has an invalid FAMILIES"),
        ({"FAMILIES": {}, "PLATFORMS": []}, "doesn't list any platforms"),
        (
            {"EXTRAS": {"a": [["b", "python_version < '3'"]]}},
            "has the unsupported marker \"python_version < '3'\" in EXTRAS",
        ),
        ({"BY_PLATFORM": {"linux": 5}}, "has an invalid BY_PLATFORM"),
    ],
)
def test_malformed_facts_are_refused(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    one = write_selector(tmp_path / "one", "gfx942", change=lambda _: changed)
    with pytest.raises(InputError, match=re.escape(found)):
        merge_selectors([one], tmp_path / "merged")


def test_files_that_are_not_selectors_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rocm-7.0.0-py3-none-any.whl").write_bytes(b"")
    (tmp_path / "rocm-7.0.0.tar.gz").write_bytes(b"\x1f\x8b damaged")
    with pytest.raises(ProblemsError) as caught:
        merge_selectors([*sorted(tmp_path.iterdir()), tmp_path / "absent.tar.gz"], tmp_path / "merged")
    found = [Path(problem.source).name for problem in caught.value.problems if isinstance(problem, InputError)]
    assert found == ["rocm-7.0.0-py3-none-any.whl", "rocm-7.0.0.tar.gz", "absent.tar.gz"]


def test_promotion_changes_the_version_in_all_facts_of_a_merged_selector(tmp_path: Path) -> None:
    linux = write_selector(tmp_path / "linux", "gfx942")
    win = write_selector(tmp_path / "win", "gfx1151", change=lambda info: {**windows(info), "SELECTED": {}})
    merge_selectors([linux, win], tmp_path / "merged")
    data = read_sdist(tmp_path / "merged/rocm-7.0.0.tar.gz")[BUILD_INFO]
    assert b"7.0.0" not in VersionChange("7.0.0", "7.1.0").text(BUILD_INFO, data, "7.0.0")


BRACKETS = {"libraries": [["rocm-sdk-libraries; " + "(" * 5000, ""]]}


def test_deeply_nested_brackets_in_a_requirement_do_not_break_a_merge(tmp_path: Path) -> None:
    linux = write_selector(tmp_path / "linux", "gfx942", change=lambda _: {"EXTRAS": BRACKETS})
    win = write_selector(tmp_path / "win", "gfx1151", change=windows)
    assert merged(tmp_path, linux, win)["EXTRAS"]["libraries"][0] == [
        BRACKETS["libraries"][0][0],
        "sys_platform == 'linux'",
    ]


def test_a_selector_with_invalid_requirements_in_its_extras_is_not_narrowed(tmp_path: Path) -> None:
    info = facts_of(write_selector(tmp_path, "gfx942"))
    kept = KeptTargets.among(info, ["gfx942"])
    with pytest.raises(InputError, match=r"^a\.whl: has an invalid requirement \(more than 32 nested brackets"):
        kept.metadata(b"Metadata-Version: 2.1\n", {**info, "EXTRAS": BRACKETS}, "a.whl")


def test_narrowing_a_merged_selector_keeps_targets_of_each_platform(tmp_path: Path) -> None:
    linux = write_selector(tmp_path / "linux", "gfx942", "gfx1100")
    win = write_selector(tmp_path / "win", "gfx1100", "gfx1151", change=windows)
    info = merged(tmp_path, linux, win)
    kept = KeptTargets.among(info, ["gfx1151"]).build_info(info)
    assert list(kept["FAMILIES"]) == ["gfx1151"]
    assert kept["EXTRAS"]["device-gfx1151"] == [["rocm-sdk-device-gfx1151==7.0.0", "sys_platform == 'win32'"]]
    assert kept["EXTRAS"]["device-gfx942"][0][0].endswith("which.has.gfx1151")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["gfx942", "linux", "{family}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_NAMES = ["FAMILIES", "PACKAGES", "LIBRARIES", "EXTRAS", "SELECTED", "BY_PLATFORM", "PLATFORMS", "REQUIRES", "OVERLAID"]


@pytest.mark.slow
@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(_NAMES), value=_VALUES)
def test_no_facts_cause_a_traceback(tmp_path: Path, name: str, value: object) -> None:
    sdist = write_selector(tmp_path / "one", "gfx942")
    files = read_sdist(sdist)
    text = render_literals({**literals(files[BUILD_INFO].decode()), name: value})
    write_sdist(sdist, "rocm-7.0.0", {**files, BUILD_INFO: text.encode()}, mtime=0)
    with suppress(RocwheelError):
        merge_selectors([sdist], tmp_path / "merged")


@pytest.mark.slow
def test_a_killed_merge_keeps_the_old_selector_and_the_next_merge_cleans_up(tmp_path: Path) -> None:
    one, two = write_selector(tmp_path / "one", "gfx942"), write_selector(tmp_path / "two", "gfx1100")
    merged(tmp_path, one)
    before = (tmp_path / "merged/rocm-7.0.0.tar.gz").read_bytes()
    program = """
import os, signal, sys
from pathlib import Path
from rocwheel.build.merging.merge import merge_selectors
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
merge_selectors([Path(path) for path in sys.argv[2:]], Path(sys.argv[1]))
"""
    killed = subprocess.run([sys.executable, "-c", program, tmp_path / "merged", one, two], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "merged/rocm-7.0.0.tar.gz").read_bytes() == before
    assert len(list((tmp_path / "merged").iterdir())) == 2
    assert list(merged(tmp_path, one, two)["FAMILIES"]) == ["gfx942", "gfx1100"]
    assert [path.name for path in (tmp_path / "merged").iterdir()] == ["rocm-7.0.0.tar.gz"]
