"""Tests of `rocwheel.build.merging.selectors`."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.build.merging.merge import merge_selectors
from rocwheel.build.merging.selectors import Place, find_places, marker_of, read_selectors
from rocwheel.build.planning.options import PlanOptions
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from tests.build.merging.selectors import on_machine, windows, write_plan, write_selector
from tests.support.example_counts import examples

LINUX, WINDOWS = Place("linux"), Place("win32")
X86, ARM = Place("linux", "x86_64"), Place("linux", "aarch64")


@pytest.mark.parametrize(
    ("builds", "places"),
    [
        ([{"linux": ["x86_64"]}, {"win32": ["AMD64"]}], [LINUX, WINDOWS]),
        ([{"linux": ["x86_64"]}, {"linux": ["aarch64"]}, {"win32": ["AMD64"]}], [ARM, X86, WINDOWS]),
        ([{"linux": ["x86_64"]}, {"linux": []}], [LINUX]),
        ([{"linux": []}], [LINUX]),
    ],
)
def test_machines_are_distinguished_if_a_platform_has_several(
    builds: list[dict[str, list[str]]], places: list[Place]
) -> None:
    assert find_places(builds) == places


@pytest.mark.parametrize(
    ("some", "marker"),
    [
        ([ARM, X86, WINDOWS], ""),
        ([X86, ARM], "sys_platform == 'linux'"),
        ([WINDOWS], "sys_platform == 'win32'"),
        ([X86], "sys_platform == 'linux' and platform_machine == 'x86_64'"),
        ([WINDOWS, ARM], "sys_platform == 'linux' and platform_machine == 'aarch64' or sys_platform == 'win32'"),
    ],
)
def test_a_marker_matches_only_the_given_places(some: list[Place], marker: str) -> None:
    among = [ARM, X86, WINDOWS]
    assert marker_of(some, among) == marker
    assert [place for place in among if place.meets(marker)] == [place for place in among if place in some]


def test_a_place_is_named_after_its_platform_and_machine() -> None:
    assert [ARM.key, WINDOWS.key] == ["linux aarch64", "win32"]


_BUILDS: list[tuple[tuple[str, ...], Any]] = [
    (("gfx942", "gfx1100"), None),
    (("gfx90a",), None),
    (("gfx1100", "gfx1151"), windows),
    (("gfx942",), on_machine("aarch64")),
]


def merged_bytes(paths: list[Path], dest: Path) -> bytes:
    """Merge into a folder without what was merged before, which may be for other GPUs."""
    shutil.rmtree(dest, ignore_errors=True)
    return Path(merge_selectors(paths, dest).path).read_bytes()


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_plans_folders_and_sdists_produce_the_same_bytes_in_any_order(tmp_path: Path, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(_BUILDS) - 1), min_size=1, unique=True))
    sdists = [write_selector(tmp_path / f"{one}/dist", *_BUILDS[one][0], change=_BUILDS[one][1]) for one in chosen]
    plans = [write_plan(tmp_path / f"{one}.json", *_BUILDS[one][0], change=_BUILDS[one][1]) for one in chosen]
    forms = [
        data.draw(st.sampled_from([sdist, sdist.parent, sdist.parent.parent, plan]))
        for sdist, plan in zip(sdists, plans, strict=True)
    ]
    expected = merged_bytes(sdists, tmp_path / "of-sdists")
    assert merged_bytes(data.draw(st.permutations(forms)), tmp_path / "of-any") == expected


def test_a_plan_and_the_sdist_built_from_the_plan_count_once(tmp_path: Path) -> None:
    sdist, plan = write_selector(tmp_path / "built", "gfx942"), write_plan(tmp_path / "plan.json", "gfx942")
    assert len(read_selectors([sdist, plan, tmp_path / "built"])) == 1


def test_selectors_are_found_in_all_family_folders_of_a_build(tmp_path: Path) -> None:
    write_selector(tmp_path / "dist/one", "gfx942")
    write_selector(tmp_path / "dist/two", "gfx1100")
    found = read_selectors([tmp_path])
    assert [one.path.relative_to(tmp_path).as_posix() for one in found] == [
        "dist/two/rocm-7.0.0.tar.gz",
        "dist/one/rocm-7.0.0.tar.gz",
    ]


def test_the_error_for_a_folder_without_a_selector_says_what_is_expected(tmp_path: Path) -> None:
    (tmp_path / "rocm-7.0.0-py3-none-any.whl").write_bytes(b"")
    with pytest.raises(InputError) as caught:
        read_selectors([tmp_path])
    assert str(caught.value) == (
        f"{tmp_path}: contains no selector sdist; expected rocm-VERSION.tar.gz. Specify the dist folder of a "
        "build. "
        "Build it with --selector sdist: a wheel can't choose packages for a machine."
    )


def test_the_error_for_a_plan_with_a_selector_wheel_suggests_an_sdist(tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "plan.json", "gfx942", options=PlanOptions(version="7.0.0", selector="wheel"))
    with pytest.raises(InputError, match=r"contains no selector sdist. Plan with --selector sdist"):
        read_selectors([plan])


def _plan_with(tmp_path: Path, **changed: object) -> Path:
    path = write_plan(tmp_path / "plan.json", "gfx942")
    document = json.loads(path.read_bytes())
    document["sdists"][0].update(changed)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"distribution": "../rocm"}, "contains an sdist without a valid name or version"),
        ({"version": "../7"}, "contains an sdist without a valid name or version"),
        ({"files": {"../../evil": ""}}, "lists the file '../../evil', which is not allowed in an sdist"),
        ({"files": {"/etc/evil": ""}}, "lists the file '/etc/evil', which is not allowed in an sdist"),
        ({"files": {"src/a\nb": ""}}, "lists the file 'src/a\\nb', which is not allowed in an sdist"),
        ({"files": {"src/rocm_sdk/_build_info.py": "VERSION = ("}}, "can't be read"),
        (
            {"files": {"src/rocm_sdk/_build_info.py": "VERSION = '1'"}},
            "contains the sdist rocm, which is not a selector",
        ),
        ({"files": {}}, "contains the sdist rocm, which is not a selector"),
        ({"files": 5}, "is not a plan (Expected `object`, got `int`"),
    ],
)
def test_a_malicious_plan_is_refused(tmp_path: Path, changed: dict[str, object], found: str) -> None:
    with pytest.raises(InputError, match=re.escape(found)):
        merge_selectors([_plan_with(tmp_path, **changed)], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "is not a plan"),
        ('{"schema": "rocwheel.audit/1"}', "is not a plan"),
        ('{"schema": "rocwheel.index/1", "sdists": []}', "has the schema 'rocwheel.index/1'; expected rocwheel.plan/1"),
        ("[" * 100_000, "is not a plan"),
    ],
)
def test_a_file_that_is_not_a_plan_is_refused(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(found)):
        read_selectors([tmp_path / "a.json"])


def test_all_problems_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProblemsError) as caught:
        read_selectors([tmp_path / "a.json", tmp_path / "empty", tmp_path / "absent.json", tmp_path / "a.txt"])
    assert [Path(problem.source).name for problem in caught.value.problems if isinstance(problem, InputError)] == [
        "a.json",
        "empty",
        "absent.json",
        "a.txt",
    ]


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1), data=st.binary(max_size=12))
def test_no_damage_to_a_plan_causes_a_traceback(tmp_path: Path, place: float, data: bytes) -> None:
    path = tmp_path / "plan.json"
    if not path.exists():
        write_plan(path, "gfx942")
    whole = path.read_bytes()
    start = int(place * len(whole))
    (tmp_path / "damaged.json").write_bytes(whole[:start] + data + whole[start + len(data) :])
    with suppress(RocwheelError):
        merge_selectors([tmp_path / "damaged.json"], tmp_path / "merged")
