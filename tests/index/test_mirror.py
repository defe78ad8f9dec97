"""Tests of `rocwheel.index.mirror`."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, WorkError
from rocwheel.core.part_file import is_part
from rocwheel.index.mirror import MirrorOptions, MirrorPlan, MirrorReport, make_mirror, plan_mirror
from rocwheel.index.mirror_choice import Choice
from rocwheel.index.source import IndexSource
from rocwheel.index.write_index import IndexOptions, write_index
from rocwheel.index.yanked import Yanking
from tests.support.wheels import make_wheel

NAMES = ("rocm-sdk-core", "rocm-sdk-devel", "rocm-sdk-device-gfx1100", "rocm-sdk-device-gfx942", "torch")


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Return the folder of an index, with five projects in it."""
    dist = tmp_path / "there" / "dist"
    for name in NAMES:
        make_wheel(dist, name.replace("-", "_"), {}, tag="py3-none-any", is_purelib=True)
    for path in dist.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    write_index(dist, dist.parent / "simple")
    return dist.parent


def plan(*places: Path, serves: Any = lambda name: "gfx942" not in name, **choice: Any) -> MirrorPlan:
    sources = [IndexSource((place / "simple").as_uri()) for place in places]
    return plan_mirror(sources, Choice(**{"projects": ("rocm*",), **choice}), serves)


def mirror(there: Path, here: Path, **choice: Any) -> MirrorReport:
    return make_mirror(plan(there, **choice), here)


def projects(found: MirrorPlan) -> list[str]:
    return [file.project for file in found.files]


def test_patterns_select_packages_for_the_gpus_but_no_development_files(there: Path) -> None:
    assert projects(plan(there)) == ["rocm-sdk-core", "rocm-sdk-device-gfx1100"]
    assert "rocm-sdk-devel" in projects(plan(there, devel=True))


def test_an_explicitly_named_project_is_always_selected(there: Path) -> None:
    assert projects(plan(there, projects=("ROCm_SDK_devel", "rocm-sdk-device-gfx942"))) == [
        "rocm-sdk-devel",
        "rocm-sdk-device-gfx942",
    ]


def test_names_that_no_index_has_are_reported_together(there: Path) -> None:
    with pytest.raises(ProblemsError) as caught:
        plan(there, projects=("jax", "rocm*", "numpy*"))
    assert [str(problem).partition(" in ")[0] for problem in caught.value.problems] == [
        "jax: is not a project",
        "numpy*: is not a project",
    ]


@pytest.mark.parametrize(
    ("version", "found"),
    [("", ["1.0", "2.0", "3.0rc1"]), ("latest", ["2.0"]), ("<2", ["1.0"]), (">=3.0rc0", ["3.0rc1"])],
)
def test_versions_are_selected_by_specifier(tmp_path: Path, version: str, found: list[str]) -> None:
    dist = tmp_path / "there" / "dist"
    for number in ("1.0", "2.0", "3.0rc1"):
        make_wheel(dist, "x", {}, tag="py3-none-any", is_purelib=True, version=number)
    write_index(dist, dist.parent / "simple")
    assert [file.version for file in plan(dist.parent, projects=("x",), version=version).files] == found


def test_an_invalid_version_specifier_is_refused(there: Path) -> None:
    with pytest.raises(InputError, match=r"--version: is 'seven'; expected a version specifier"):
        plan(there, version="seven")


def test_a_mirror_has_the_files_with_their_dates_and_an_index(there: Path, tmp_path: Path) -> None:
    report = mirror(there, tmp_path / "here")
    assert [(one.project, one.is_new) for one in report.files] == [
        ("rocm-sdk-core", True),
        ("rocm-sdk-device-gfx1100", True),
    ]
    name = report.files[0].filename
    page = json.loads((tmp_path / "here/simple/rocm-sdk-core/index.json").read_text())
    assert page["files"][0]["upload-time"].startswith("2023-11-14T22:13:20")
    for suffix in ("", ".metadata"):
        there_file, here_file = (place / "dist" / f"{name}{suffix}" for place in (there, tmp_path / "here"))
        assert here_file.read_bytes() == there_file.read_bytes()


def test_yanked_marks_are_mirrored(there: Path, tmp_path: Path) -> None:
    name = next(path.name for path in (there / "dist").glob("rocm_sdk_core*.whl"))
    write_index(there / "dist", there / "simple", options=IndexOptions(yanking=Yanking({name: "bad code"})))
    mirror(there, tmp_path / "here")
    page = json.loads((tmp_path / "here/simple/rocm-sdk-core/index.json").read_text())
    assert page["files"][0]["yanked"] == "bad code"


@pytest.mark.parametrize("form", ["index.json", "index.html"])
def test_a_multiline_reason_is_mirrored_as_one_line(there: Path, tmp_path: Path, form: str) -> None:
    name = "torch-1.0-py3-none-any.whl"
    write_index(there / "dist", there / "simple", options=IndexOptions(yanking=Yanking({name: "bad build, use 1.1"})))
    for page in (there / "simple/torch").iterdir():
        text = page.read_text().replace("build, use", "build\\nuse" if form == "index.json" else "build\nuse")
        page.unlink()
        if page.name == form:
            page.write_text(text)
    for _ in range(2):
        mirror(there, tmp_path / "here", projects=("torch",))
        page = json.loads((tmp_path / "here/simple/torch/index.json").read_text())
        assert page["files"][0]["yanked"] == "bad build use 1.1"


def test_a_second_run_downloads_only_new_files(there: Path, tmp_path: Path) -> None:
    mirror(there, tmp_path / "here", projects=("rocm-sdk-core",))
    report = mirror(there, tmp_path / "here")
    assert [one.is_new for one in report.files] == [False, True]
    assert {path.name for path in (tmp_path / "here/simple").iterdir() if path.is_dir()} == {
        "rocm-sdk-core",
        "rocm-sdk-device-gfx1100",
    }


def test_an_existing_file_with_different_bytes_is_not_replaced(there: Path, tmp_path: Path) -> None:
    name = mirror(there, tmp_path / "here").files[0].filename
    (tmp_path / "here/dist" / name).write_bytes(b"other")
    with pytest.raises(RocwheelError, match=f"{re.escape(name)}: exists with the SHA-256"):
        mirror(there, tmp_path / "here")
    assert (tmp_path / "here/dist" / name).read_bytes() == b"other"


def test_a_different_existing_wheel_is_not_blamed_on_the_publisher(there: Path, tmp_path: Path) -> None:
    name = mirror(there, tmp_path / "here").files[0].filename
    make_wheel(tmp_path / "made", "rocm-sdk-core", {"other.py": b""}).replace(tmp_path / "here/dist" / name)
    with pytest.raises(RocwheelError) as caught:
        mirror(there, tmp_path / "here")
    assert "core metadata" not in str(caught.value)


def test_a_file_that_does_not_match_its_page_is_skipped_and_others_are_mirrored(there: Path, tmp_path: Path) -> None:
    found = plan(there)
    wheel = there / "dist" / found.files[0].filename
    data = wheel.read_bytes()
    wheel.write_bytes(data[:-1] + b"?")
    with pytest.raises(
        InputError, match=rf"{re.escape(wheel.name)}: has the SHA-256 .*; expected {found.files[0].sha256}"
    ):
        make_mirror(found, tmp_path / "here")
    assert sorted(path.name for path in (tmp_path / "here/simple").iterdir() if path.is_dir()) == [
        "rocm-sdk-device-gfx1100"
    ]
    assert not (tmp_path / "here/dist" / wheel.name).exists()


def test_core_metadata_that_differs_from_the_page_is_an_error(there: Path, tmp_path: Path) -> None:
    page = there / "simple/rocm-sdk-core/index.json"
    document = json.loads(page.read_text())
    document["files"][0]["core-metadata"] = {"sha256": "0" * 64}
    page.write_text(json.dumps(document))
    with pytest.raises(InputError, match="has different core metadata than its page lists"):
        mirror(there, tmp_path / "here")


def test_an_untrustworthy_index_is_refused_before_any_download(there: Path, tmp_path: Path) -> None:
    for project in ("rocm-sdk-core", "rocm-sdk-device-gfx1100"):
        page = there / "simple" / project / "index.json"
        document = json.loads(page.read_text())
        document["files"][0]["hashes"] = {}
        page.write_text(json.dumps(document))
    with pytest.raises(ProblemsError) as caught:
        mirror(there, tmp_path / "here")
    assert len(caught.value.problems) == 2
    assert not (tmp_path / "here").exists()


@pytest.fixture
def other(there: Path) -> Path:
    """Return the folder of another index: a project of its own, and other versions of one that `there` has."""
    dist = there.parent / "other" / "dist"
    make_wheel(dist, "rocm_extra", {}, tag="py3-none-any", is_purelib=True)
    make_wheel(dist, "rocm_sdk_core", {"x.py": b"other"}, version="99.0", tag="py3-none-any", is_purelib=True)
    write_index(dist, dist.parent / "simple")
    return dist.parent


def test_the_first_index_that_has_a_project_owns_it(there: Path, other: Path) -> None:
    found = plan(there, other)
    assert projects(found) == ["rocm-sdk-core", "rocm-sdk-device-gfx1100", "rocm-extra"]
    assert [file.url.startswith(there.as_uri()) for file in found.files] == [True, True, False]
    assert [file.version for file in plan(other, there, projects=("rocm-sdk-core",)).files] == ["99.0"]


def test_pages_of_an_owned_project_in_later_indexes_are_not_read(there: Path, other: Path) -> None:
    for page in (other / "simple" / "rocm-sdk-core").iterdir():
        page.write_bytes(b"{")
    assert [file.version for file in plan(there, other, projects=("rocm-sdk-core",)).files] == ["1.0"]


def test_a_pooled_project_is_taken_from_all_indexes(there: Path, other: Path) -> None:
    found = plan(there, other, projects=("rocm-sdk-core",), pooled=frozenset({"rocm-sdk-core"}))
    assert [file.version for file in found.files] == ["1.0", "99.0"]


def test_an_index_without_a_root_page_has_the_projects_that_have_pages(there: Path) -> None:
    for name in ("index.html", "index.json"):
        (there / "simple" / name).unlink()
    assert projects(plan(there, projects=("torch",))) == ["torch"]
    with pytest.raises(InputError, match="rocm-sdk-cor: is not a project in"):
        plan(there, projects=("torch", "rocm-sdk-cor"))


def test_a_pooled_project_must_be_in_one_of_the_indexes(there: Path, other: Path) -> None:
    with pytest.raises(ProblemsError) as caught:
        plan(there, other, pooled=frozenset({"rocm-sdk-core", "rocm-sdk-cor", "rocm-*"}))
    either = " or ".join(f"{(place / 'simple').as_uri()}/" for place in (there, other))
    assert [str(problem) for problem in caught.value.problems] == [
        "--pool: 'rocm-*' is a pattern; expected the name of a project. Repeat the option for each project.",
        f"--pool: 'rocm-sdk-cor' is not a project in {either}. Correct the name.",
    ]


def test_contradictory_indexes_are_an_error_only_for_pooled_projects(there: Path, other: Path) -> None:
    make_wheel(other / "dist", "rocm_sdk_core", {"x.py": b"other"}, tag="py3-none-any", is_purelib=True)
    write_index(other / "dist", other / "simple")
    with pytest.raises(InputError, match="is a different file at"):
        plan(there, other, pooled=frozenset({"rocm-sdk-core"}))
    assert [file.version for file in plan(there, other, projects=("rocm-sdk-core",)).files] == ["1.0"]


def test_the_page_of_an_explicitly_named_project_is_read_once(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    read = IndexSource.read_project

    def counted(source: IndexSource, project: str) -> Any:
        asked.append(project)
        return read(source, project)

    monkeypatch.setattr(IndexSource, "read_project", counted)
    plan(there, projects=("rocm-sdk-core", "ROCm_SDK.core", "torch"))
    assert sorted(asked) == ["rocm-sdk-core", "torch"]


def test_an_interrupted_transfer_is_resumed(there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = plan(there, projects=("rocm-sdk-core",))
    data = (there / "dist" / found.files[0].filename).read_bytes()
    starts: list[int] = []

    def stream(_: object, start: int = 0) -> Any:
        starts.append(start)
        yield data[start : start + 100]
        if len(starts) == 1:
            source, text = "there", "ended"
            raise WorkError(source, text)
        yield data[start + 100 :]

    monkeypatch.setattr("rocwheel.index.source.stream_file", stream)
    with pytest.raises(WorkError, match="ended"):
        make_mirror(found, tmp_path / "here")
    assert all(is_part(path.name) for path in (tmp_path / "here/dist").iterdir())
    make_mirror(found, tmp_path / "here")
    assert starts == [0, 100]
    wheel = tmp_path / "here/dist" / found.files[0].filename
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == found.files[0].sha256


def test_yanked_marks_removed_at_the_source_are_removed_from_the_mirror(there: Path, tmp_path: Path) -> None:
    name = next(path.name for path in (there / "dist").glob("rocm_sdk_core*.whl"))
    write_index(there / "dist", there / "simple", options=IndexOptions(yanking=Yanking({name: "bad code"})))
    mirror(there, tmp_path / "here")
    write_index(there / "dist", there / "simple", options=IndexOptions(yanking=Yanking(unyanked=(name,))))
    mirror(there, tmp_path / "here")
    page = json.loads((tmp_path / "here/simple/rocm-sdk-core/index.json").read_text())
    assert "yanked" not in page["files"][0]


def test_files_removed_at_the_source_are_removed_only_from_an_exact_mirror(there: Path, tmp_path: Path) -> None:
    mirror(there, tmp_path / "here")
    (gone,) = (there / "dist").glob("rocm_sdk_device_gfx1100*.whl")
    gone.unlink()
    write_index(there / "dist", there / "simple")
    assert mirror(there, tmp_path / "here").removed == ()
    assert (tmp_path / "here/dist" / gone.name).exists()
    report = make_mirror(plan(there), tmp_path / "here", MirrorOptions(exact=True))
    assert report.removed == (gone.name,)
    assert [path.name for path in (tmp_path / "here/dist").glob("*gfx1100*")] == []
    assert not (tmp_path / "here/simple/rocm-sdk-device-gfx1100").exists()


@pytest.mark.parametrize("exact", [True, False])
def test_an_index_cannot_be_mirrored_into_the_folder_of_its_own_files(there: Path, exact: bool) -> None:
    before = sorted(path.name for path in (there / "dist").iterdir())
    with pytest.raises(
        InputError, match="dist: contains the files of the mirrored index itself; expected another folder"
    ):
        make_mirror(plan(there), there, MirrorOptions(exact=exact))
    assert sorted(path.name for path in (there / "dist").iterdir()) == before


def test_an_exact_mirror_is_refused_in_the_folder_of_a_build(there: Path, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "here/dist", "other", {}, tag="py3-none-any", is_purelib=True)
    (tmp_path / "here/rocwheel-build.json").write_text("{}")
    with pytest.raises(InputError, match=r"here: is the folder of a build \(rocwheel-build.json\); expected a mirror"):
        make_mirror(plan(there), tmp_path / "here", MirrorOptions(exact=True))
    assert wheel.exists()


def test_nothing_is_removed_if_a_file_cannot_be_downloaded(there: Path, tmp_path: Path) -> None:
    mirror(there, tmp_path / "here")
    found = plan(there, projects=("rocm-sdk-core", "torch"))
    (wheel,) = (there / "dist").glob("torch*.whl")
    wheel.write_bytes(b"other")
    with pytest.raises(RocwheelError):
        make_mirror(found, tmp_path / "here", MirrorOptions(exact=True))
    assert len(list((tmp_path / "here/dist").glob("*gfx1100*.whl"))) == 1


def pages(place: Path) -> dict[str, bytes]:
    files = (path for path in place.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(place)): path.read_bytes() for path in files}


def test_a_mirror_of_a_mirror_has_the_same_bytes(there: Path, tmp_path: Path) -> None:
    for number, path in enumerate(sorted((there / "dist").glob("*.whl"))):
        os.utime(path, ns=(1_700_000_000_123_457_000 + number, 1_700_000_000_123_457_000 + number))
    write_index(there / "dist", tmp_path / "there/again")
    (there / "simple").rename(there / "earlier")
    (there / "again").rename(there / "simple")
    mirror(there, tmp_path / "first")
    mirror(tmp_path / "first", tmp_path / "second")
    first = pages(tmp_path / "first")
    assert first == pages(tmp_path / "second")
    assert b"2023-11-14T22:13:20.123457Z" in first["simple/rocm-sdk-core/index.json"]


def test_a_file_gets_its_date_before_its_name(there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dates = []
    replace = Path.replace

    def noting(self: Path, target: Path) -> Path:
        if target.suffix == ".whl":
            dates.append(self.stat().st_mtime_ns)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", noting)
    mirror(there, tmp_path / "here")
    assert dates == [1_700_000_000 * 10**9] * 2


def test_an_existing_file_gets_the_date_on_the_page(there: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    mirror(there, here)
    page = here / "simple/rocm-sdk-core/index.json"
    first = page.read_bytes()
    [wheel] = here.rglob("rocm_sdk_core-*.whl")
    os.utime(wheel)  # as an earlier version left it that was killed
    mirror(there, here)
    assert wheel.stat().st_mtime_ns == 1_700_000_000 * 10**9
    assert page.read_bytes() == first
