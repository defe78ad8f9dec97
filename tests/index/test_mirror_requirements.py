"""Tests of `rocwheel.index.mirror_requirements`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import Version

from rocwheel.core.errors import InputError
from rocwheel.core.hashing import hash_file
from rocwheel.index.mirror import MirrorPlan, make_mirror, plan_mirror
from rocwheel.index.mirror_choice import Choice, Machines
from rocwheel.index.mirror_requirements import DependencyReader, Offer
from rocwheel.index.source import IndexSource
from rocwheel.index.trust import ListedFile
from rocwheel.index.write_index import IndexOptions, write_index
from rocwheel.index.yanked import Yanking
from tests.support.sdists import write_sdist
from tests.support.wheels import make_wheel

PYPROJECT = '[build-system]\nrequires = ["setuptools>=61"]\n'
REQUIRES_TXT = """\
core==1.0

[libraries]
libs>=1

[libraries:sys_platform == "win32"]
windows-only

[device-gfx942]
device-gfx942

[device-gfx1100]
device-gfx1100

[device-gfx906]
core==1.0+gfx906.is.not.in.this.release.which.has.gfx942

[devel]
devel
"""


def wheel(dist: Path, name: str, version: str = "1.0", tag: str = "py3-none-any", *requires: str) -> None:
    make_wheel(dist, name, {}, version=version, tag=tag, requires=requires)


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Return the folder of an index: a selector, which is an sdist with dynamic requirements, and what it selects."""
    dist = tmp_path / "there" / "dist"
    dist.mkdir(parents=True)
    info = "Metadata-Version: 2.4\nName: rocm\nVersion: 1.0\nDynamic: Requires-Dist\n"
    texts = {"PKG-INFO": info, "src/rocm.egg-info/requires.txt": REQUIRES_TXT, "pyproject.toml": PYPROJECT}
    write_sdist(dist, "rocm-1.0", {name: text.encode() for name, text in texts.items()})
    wheel(dist, "core")
    wheel(dist, "core", "2.0")
    wheel(dist, "libs", "1.0", "py3-none-any", "core", "numpy>=1.26", "far @ https://h/far-1.0.tar.gz")
    wheel(dist, "libs", "1.1", "py3-none-any", "core<2", "numpy>=1.26")
    for name in ("windows_only", "device_gfx942", "device_gfx1100", "devel", "unrelated"):
        wheel(dist, name)
    write_index(dist, dist.parent / "simple")
    return dist.parent


LINUX, WINDOWS = Machines(("linux_x86_64",)), Machines(("win_amd64",))


def plan(there: Path, *, machines: Machines = LINUX, **choice: object) -> MirrorPlan:
    wanted = Choice(**{"projects": ("rocm",), "machines": machines, "requirements": True, **choice})  # type: ignore[arg-type]
    source = IndexSource((there / "simple").as_uri())
    return plan_mirror(
        [source], wanted, lambda name: "gfx942" not in name, DependencyReader(there.parent / "here/dist")
    )


def names(found: MirrorPlan) -> list[str]:
    return sorted(file.filename.removesuffix("-py3-none-any.whl") for file in found.files)


def test_requirements_for_the_gpus_and_platform_are_mirrored_in_the_matching_version(there: Path) -> None:
    found = plan(there)
    assert names(found) == ["core-1.0", "device_gfx1100-1.0", "libs-1.1", "rocm-1.0.tar.gz"]
    assert found.absent == ("numpy>=1.26", "setuptools>=61")
    assert found.unusable == {}


def test_another_platform_has_other_requirements(there: Path) -> None:
    assert "windows_only-1.0" in names(plan(there, machines=WINDOWS))


def test_only_the_requested_extras_are_followed(there: Path) -> None:
    assert names(plan(there, extras={"rocm": ("devel",)})) == ["core-1.0", "devel-1.0", "rocm-1.0.tar.gz"]
    assert names(plan(there, extras={"rocm": ()})) == ["core-1.0", "rocm-1.0.tar.gz"]


def test_the_device_extra_means_the_requested_gpus(there: Path) -> None:
    expected = ["core-1.0", "device_gfx1100-1.0", "rocm-1.0.tar.gz"]
    assert names(plan(there, extras={"rocm": ("device",)})) == expected


def test_an_extra_that_a_project_lacks_is_an_error(there: Path) -> None:
    message = (
        "--project: rocm has no extra library; expected one of devel, device-gfx1100, device-gfx906, device-gfx942, "
        "libraries"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        plan(there, extras={"rocm": ("library",)})


def test_requirements_for_other_gpus_are_reported_as_unusable(there: Path) -> None:
    wheel(there / "dist", "everything", "1.0", "py3-none-any", "device-gfx942", "device-gfx1100")
    write_index(there / "dist", there / "simple")
    found = plan(there, projects=("everything",))
    assert names(found) == ["device_gfx1100-1.0", "everything-1.0"]
    assert found.unusable == {"everything-1.0-py3-none-any.whl": ("device-gfx942",)}


def test_a_yanked_version_is_selected_only_if_it_is_pinned(there: Path) -> None:
    yanking = Yanking({"core-1.0-py3-none-any.whl": "", "libs-1.1-py3-none-any.whl": ""})
    write_index(there / "dist", there / "simple", options=IndexOptions(yanking=yanking))
    found = plan(there)
    assert names(found) == ["core-1.0", "core-2.0", "device_gfx1100-1.0", "libs-1.0", "rocm-1.0.tar.gz"]
    assert found.absent == ("far", "numpy>=1.26", "setuptools>=61")


def test_core_metadata_with_the_wrong_hash_is_an_error(there: Path) -> None:
    (there / "dist/libs-1.1-py3-none-any.whl.metadata").write_text("Metadata-Version: 2.1\nName: libs\nVersion: 1.1\n")
    with pytest.raises(InputError, match=r"libs-1\.1-py3-none-any\.whl\.metadata: has the SHA-256"):
        plan(there)


def test_the_wheel_is_read_if_its_core_metadata_is_not_available_separately(there: Path) -> None:
    for page in (there / "simple/libs").iterdir():
        page.write_text(page.read_text().replace("core-metadata", "no-metadata").replace("dist-info", "no"))
    document = json.loads((there / "simple/libs/index.json").read_text())
    assert "no-metadata" in document["files"][0]
    found = plan(there)
    assert names(found) == ["core-1.0", "device_gfx1100-1.0", "libs-1.1", "rocm-1.0.tar.gz"]
    assert found.fetched == {"libs-1.1-py3-none-any.whl", "rocm-1.0.tar.gz"}
    report = make_mirror(found, there.parent / "here")
    assert all(file.is_new for file in report.files)


LINES = st.text(alphabet="rx1[]():;=<>!~@, .\"'#\n", max_size=80).map(str.encode)


@given(st.one_of(st.binary(max_size=200), LINES))
def test_any_requirements_in_an_sdist_are_read_or_refused(data: bytes) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        info = b"Metadata-Version: 2.4\nName: rocm\nVersion: 1.0\n"
        texts = {"PKG-INFO": info, "src/rocm.egg-info/requires.txt": data, "pyproject.toml": data}
        path = write_sdist(folder, "rocm-1.0", texts)
        file = ListedFile(
            filename=path.name, project="rocm", version="1.0", url=path.as_uri(), sha256=hash_file(path), size=None,
            metadata_sha256=None, yanked=None, upload_time=None,
        )  # fmt: skip
        try:
            needs = DependencyReader(folder).read(file)
        except InputError as e:
            assert str(folder) in str(e)  # noqa: PT017
        else:
            assert all(requirement.name for requirement in needs.requires)


def listed(version: str, yanked: str | None = None) -> ListedFile:
    return ListedFile(f"part-{version}.tar.gz", "part", version, "", "", None, None, yanked, None)


VERSIONS = ("1.0", "1.1", "1.1+local", "2.0a1", "2.0", "2.1rc1", "3.0.dev1")
SPECIFIERS = ("", ">=1.1", "<2", "==1.1", "==1.*", "!=2.0", "~=1.0", ">=2.0a1", "===1.1+local", "==2.1rc1", "==9")


@given(st.sets(st.sampled_from(VERSIONS)), st.sets(st.sampled_from(VERSIONS)), st.lists(st.sampled_from(SPECIFIERS)))
def test_the_same_versions_are_chosen_as_by_filtering_all_of_them(
    versions: set[str], yanked: set[str], specifiers: list[str]
) -> None:
    offer = Offer([listed(version, "bad" if version in yanked else None) for version in sorted(versions)])

    def chosen(specifier: SpecifierSet) -> list[str]:
        found = [*specifier.filter(sorted(map(Version, versions - yanked)))]
        if not found and any(one.operator in {"==", "==="} for one in specifier):
            found = [*specifier.filter(sorted(map(Version, versions)), prereleases=True)]
        return [str(max(found))] if found else []

    for index, text in enumerate(specifiers):
        assert [file.version for file in offer.newest(SpecifierSet(text))] == chosen(SpecifierSet(text))
        joined = SpecifierSet(",".join(filter(None, specifiers[: index + 1])))
        assert [file.version for file in offer.newest_for_all(SpecifierSet(text))] == chosen(joined)


def test_versions_are_compared_with_requirements_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    contains = Specifier.contains

    def counted(self: Specifier, item: Version, prereleases: bool | None = None) -> bool:
        compared.append(item)
        return contains(self, item, prereleases)

    monkeypatch.setattr(Specifier, "contains", counted)
    offer = Offer(listed(f"1.{number}") for number in range(200))
    for number in range(200):
        specifier = SpecifierSet(f">=1.{number}")
        assert [file.version for file in offer.newest_for_all(specifier)] == ["1.199"]
        assert [file.version for file in offer.newest(specifier)] == ["1.199"]
    assert len(compared) == 400
