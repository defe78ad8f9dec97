"""Tests of `rocwheel.build.promoting.promote`."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import zipfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.promoting import promote
from rocwheel.build.promoting.promote import PromoteJob
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, WorkError
from rocwheel.core.scratch import locked_folder
from rocwheel.demo import SAMPLE_SDK
from tests.support.command_line import rocwheel
from tests.support.environments import make_venv, pip_for
from tests.support.wheels import make_wheel, members, write_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rocwheel.build.planning.options import SelectorForm


pytestmark = pytest.mark.slow

RECIPE = SAMPLE_SDK.parent / "build/rocm.toml"
CORE = "rocm_sdk_core-7.0.0rc1-py3-none-manylinux_2_17_x86_64.whl"


def build(dest: Path, version: str, artifacts: Path = SAMPLE_SDK, selector: SelectorForm = "sdist") -> Path:
    BuildJob(PlanJob(artifacts, options=PlanOptions(version=version, selector=selector)), dest).run()
    return dest / "dist"


@pytest.fixture(scope="module")
def candidates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("candidates"), "7.0.0rc1")


@pytest.fixture
def dist(candidates: Path, tmp_path: Path) -> Path:
    """Return a copy of the candidates, to be changed."""
    return shutil.copytree(candidates, tmp_path / "dist")


def digests(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def without(folder: Path, *targets: str) -> Path:
    """Return a folder with the artifacts of the sample SDK that are not for these targets."""
    folder.mkdir()
    for archive in SAMPLE_SDK.glob("*.tar.xz"):
        if not any(target in archive.name for target in targets):
            shutil.copy(archive, folder)
    return folder


def test_a_promoted_set_equals_a_build_of_the_new_version(candidates: Path, sample_dist: Path, tmp_path: Path) -> None:
    result = PromoteJob(candidates, "7.0", tmp_path / "out").run()
    assert (result.old_version, result.version, result.left_out) == ("7.0.0rc1", "7.0", ())
    PromoteJob(candidates, "7.0.0", tmp_path / "exact").run()
    assert digests(tmp_path / "exact") == digests(sample_dist)


def test_a_promoted_selector_wheel_equals_a_built_selector_wheel(tmp_path: Path) -> None:
    candidates = build(tmp_path / "rc", "7.0.0rc1", selector="wheel")
    PromoteJob(candidates, "7.0.0", tmp_path / "out").run()
    assert digests(tmp_path / "out") == digests(build(tmp_path / "final", "7.0.0", selector="wheel"))


@pytest.mark.parametrize("selector", ["sdist", "wheel"])
@pytest.mark.parametrize("kept", [("gfx906",), ("gfx90a", "gfx906")])
def test_a_set_promoted_for_some_targets_equals_a_build_for_these_targets(
    tmp_path: Path, kept: tuple[str, ...], selector: SelectorForm
) -> None:
    others = {"gfx906", "gfx90a", "gfx1030"} - set(kept)
    artifacts = without(tmp_path / "artifacts", *others)
    candidates = build(tmp_path / "rc", "7.0.0rc1", selector=selector)
    result = PromoteJob(candidates, "7.0.0", tmp_path / "out", kept).run()
    assert result.targets == tuple(sorted(kept))
    assert len(result.left_out) == len(others)
    assert digests(tmp_path / "out") == digests(build(tmp_path / "final", "7.0.0", artifacts, selector))


def per_family(folder: Path, *families: str) -> Path:
    folder.mkdir(parents=True)
    for archive in SAMPLE_SDK.glob("*.tar.xz"):
        if "xnack" not in archive.name and "gfx1030" not in archive.name:
            name = archive.name.replace("gfx906", "gfx906-dgpu").replace("gfx90a", "gfx90a-dcgpu")
            if "gfx" not in name or any(family in name for family in families):
                shutil.copy(archive, folder / name)
    return folder


def test_families_are_promoted_in_their_folders_and_can_be_left_out(tmp_path: Path) -> None:
    recipe = tmp_path / "family.toml"
    recipe.write_text(RECIPE.read_text().replace("schema = 1", 'schema = 1\nlayout = "per-family"'))
    artifacts = per_family(tmp_path / "artifacts", "gfx906-dgpu", "gfx90a-dcgpu")
    for version in ("7.0.0rc1", "7.0.0"):
        BuildJob(PlanJob(artifacts, recipe, PlanOptions(version=version)), tmp_path / version).run()
    PromoteJob(tmp_path / "7.0.0rc1/dist", "7.0.0", tmp_path / "out").run()
    assert digests(tmp_path / "out") == digests(tmp_path / "7.0.0/dist")
    PromoteJob(tmp_path / "7.0.0rc1/dist", "7.0.0", tmp_path / "one", ("gfx90a",)).run()
    assert sorted(digests(tmp_path / "one")) == [
        "gfx90a-dcgpu/rocm-7.0.0.tar.gz",
        "gfx90a-dcgpu/rocm_sdk_devel-7.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "rocm_profiler-7.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "rocm_sdk_core-7.0.0-py3-none-manylinux_2_17_x86_64.whl",
        "rocm_sdk_libraries_gfx90a_dcgpu-7.0.0-py3-none-manylinux_2_5_x86_64.whl",
    ]


def test_payloads_are_copied_without_repacking(candidates: Path, tmp_path: Path) -> None:
    """A member that was stored stays stored, though a packer would deflate it."""
    stored = tmp_path / "stored"
    BuildJob(PlanJob(SAMPLE_SDK, options=PlanOptions(version="7.0.0rc1")), stored, level=0).run()
    PromoteJob(stored / "dist", "7.0.0", tmp_path / "out").run()
    name = "rocm_sdk_libraries-7.0.0-py3-none-manylinux_2_5_x86_64.whl"
    with zipfile.ZipFile(tmp_path / "out" / name) as archive:
        libraries = [info for info in archive.infolist() if ".so" in info.filename]
    assert libraries
    assert {info.compress_type for info in libraries} == {zipfile.ZIP_STORED}


def test_the_sdk_manifest_changes_only_fields_with_the_old_version(dist: Path, tmp_path: Path) -> None:
    name, path = "rocm_sdk_core-7.0.0rc1.dist-info", dist / CORE
    contents = {key: data for key, data in members(path).items() if not key.endswith("/RECORD")}
    manifest = "_rocm_sdk_core/share/therock/therock_manifest.json"
    contents[manifest] = b'{"rocm_package_version": "7.0.0rc1",  "rocm_version": "7.0.0"}'
    contents["_rocm_sdk_core/.info/version"] = b"7.0.0rc1\n"
    write_wheel(path, name, contents)
    PromoteJob(dist, "7.0.0", tmp_path / "out").run()
    found = members(next((tmp_path / "out").glob("*core*")))
    assert found[manifest] == b'{"rocm_package_version": "7.0.0",  "rocm_version": "7.0.0"}'
    assert found["_rocm_sdk_core/.info/version"] == b"7.0.0rc1\n"


def test_the_data_folder_build_tag_and_license_files_follow_the_version(tmp_path: Path) -> None:
    files = {"demo_x-1.0rc1.data/scripts/tool": b"#!python\n", "demo_x/__init__.py": b"", "demo_x/_dist_info.py": b""}
    files["demo_x/_dist_info.py"] = b"__version__ = '1.0rc1'\nOTHER = '1.0rc11'\n"
    wheel = make_wheel(tmp_path / "in", "demo-x", files, version="1.0rc1", requires=("a==1.0rc1; extra == 'b'", "c"))
    wheel.rename(wheel.with_name("demo_x-1.0rc1-1-py3-none-linux_x86_64.whl"))
    PromoteJob(tmp_path / "in", "1.0", tmp_path / "out").run()
    [made] = (tmp_path / "out").iterdir()
    assert made.name == "demo_x-1.0-1-py3-none-linux_x86_64.whl"
    found = members(made)
    assert sorted(found) == [
        "demo_x-1.0.data/scripts/tool",
        "demo_x-1.0.dist-info/METADATA",
        "demo_x-1.0.dist-info/RECORD",
        "demo_x-1.0.dist-info/WHEEL",
        "demo_x-1.0.dist-info/licenses/LICENSE",
        "demo_x/__init__.py",
        "demo_x/_dist_info.py",
    ]
    assert found["demo_x/_dist_info.py"] == b"__version__ = \"1.0\"\nOTHER = '1.0rc11'\n"
    assert found["demo_x-1.0.dist-info/METADATA"] == (
        b"Metadata-Version: 2.4\nName: demo-x\nVersion: 1.0\nLicense-Expression: MIT\nLicense-File: LICENSE\n"
        b"Requires-Dist: a==1.0; extra == 'b'\nRequires-Dist: c\n\nA description.\n"
    )


def test_the_audit_reports_no_findings_in_a_promoted_set(candidates: Path, tmp_path: Path) -> None:
    PromoteJob(candidates, "7.0.0", tmp_path / "out", ("gfx906",)).run()
    done = rocwheel("audit", "--json", *sorted((tmp_path / "out").glob("*.whl")))
    assert (done.returncode, json.loads(done.stdout)["findings"]) == (0, [])


def test_pip_installs_a_promoted_set_with_the_new_version(candidates: Path, tmp_path: Path) -> None:
    PromoteJob(candidates, "7.0.0", tmp_path / "out", ("gfx906",)).run()
    python = make_venv(tmp_path / "venv")
    install = [*pip_for(python), "install", "-q", "--no-index", "--find-links", str(tmp_path / "out")]
    subprocess.run([*install, "rocm[libraries,devel,device-gfx906]"], check=True)
    subprocess.run([*pip_for(python), "check"], check=True)
    done = subprocess.run([tmp_path / "venv/bin/rocm-sdk", "version"], check=True, capture_output=True, text=True)
    assert done.stdout == "7.0.0\n"
    subprocess.run([tmp_path / "venv/bin/rocm-sdk", "test"], check=True)
    install.remove("-q")
    refused = subprocess.run([*install, "rocm[device-gfx1030]"], check=False, capture_output=True, text=True)
    assert "7.0.0+gfx1030.is.not.in.this.release.which.has.gfx906" in refused.stdout + refused.stderr


def check_refused(dist: Path, to: str, out: Path, *expected: str, targets: tuple[str, ...] = ()) -> None:
    before = digests(out.parent)
    with pytest.raises(RocwheelError) as caught:
        PromoteJob(dist, to, out, targets).run()
    found = caught.value.problems if isinstance(caught.value, ProblemsError) else (caught.value,)
    assert [str(problem).replace(str(out.parent), "") for problem in found] == list(expected)
    assert digests(out.parent) == before


def test_a_lower_version_and_an_existing_version_are_refused(dist: Path, tmp_path: Path) -> None:
    names = "rocm-7.0.0rc1.tar.gz, rocm_profiler-7.0.0rc1-py3-none-manylinux_2_5_x86_64.whl and 6 other files"
    lower = (
        f"--to: is 7.0.0b2, which is lower than 7.0.0rc1, the version of {names}; expected a later version, because "
        "installers would prefer the candidates"
    )
    check_refused(dist, "7.0.0b2", tmp_path / "out", lower)
    there = f"--to: is 7.0rc1, which {names} in /dist already have; expected a version that no candidate has"
    check_refused(dist, "7.0rc1", tmp_path / "out", there)
    invalid = "--to: is 'seven'; expected a PEP 440 version, such as 7.2.0"
    check_refused(dist, "seven", tmp_path / "out", invalid)


def test_several_versions_are_refused_together_with_an_existing_version(dist: Path, tmp_path: Path) -> None:
    make_wheel(dist, "rocm-sdk-core", {}, version="7.0.0", tag="py3-none-any")
    make_wheel(dist, "rocm-profiler", {}, version="7.1.0", tag="py3-none-any")
    check_refused(
        dist,
        "7.0.0",
        tmp_path / "out",
        "/dist: contains several versions: 7.0.0rc1: rocm-7.0.0rc1.tar.gz, rocm_profiler-7.0.0rc1-py3-none-"
        "manylinux_2_5_x86_64.whl and 6 other files; 7.1.0: rocm_profiler-7.1.0-py3-none-any.whl; 7.0.0: "
        "rocm_sdk_core-7.0.0-py3-none-any.whl; expected one version. Keep the files of one version in the folder, and "
        "move the others.",
        "--to: is 7.0.0, which is lower than 7.1.0, the version of rocm_profiler-7.1.0-py3-none-any.whl; expected a "
        "later version, because installers would prefer the candidates",
        "--to: is 7.0.0, which rocm_sdk_core-7.0.0-py3-none-any.whl in /dist already has; expected a version that no "
        "candidate has",
    )


def test_every_existing_output_file_is_reported(dist: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in ("rocm-7.0.0.tar.gz", "rocm_sdk_core-7.0.0-py3-none-manylinux_2_17_x86_64.whl"):
        (tmp_path / "out" / name).touch()
    rest = "already exists; expected no file with this name. Remove the file, or choose a different --output."
    expected = (
        f"/out/rocm-7.0.0.tar.gz: {rest}",
        f"/out/rocm_sdk_core-7.0.0-py3-none-manylinux_2_17_x86_64.whl: {rest}",
    )
    check_refused(dist, "7.0.0", tmp_path / "out", *expected)
    rest = "expected a folder outside /dist. Change --output."
    check_refused(dist, "7.0.0", dist, f"/dist: contains the candidates; {rest}")


def test_an_output_folder_inside_the_candidate_folder_is_refused(dist: Path) -> None:
    rest = "is a folder in ; expected a folder outside . Change --output."
    check_refused(dist, "7.0.0", dist / "release", f"/release: {rest}")


def test_all_files_that_are_not_valid_packages_are_refused_together(dist: Path, tmp_path: Path) -> None:
    (dist / "a-1.tar.gz").write_bytes(b"no tar")
    (dist / "b-1-py3-none-any.whl").write_bytes(b"no zip")
    (dist / CORE).rename(dist / CORE.replace("rc1", "rc2"))
    (dist / "c.tar.gz").touch()
    with pytest.raises(ProblemsError) as caught:
        PromoteJob(dist, "7.0.0", tmp_path / "out").run()
    found = [str(problem).replace(f"{dist}/", "").partition("; expected")[0] for problem in caught.value.problems]
    assert found == [
        "a-1.tar.gz: isn't a readable .tar.gz archive (Not a gzipped file (b'no')). Build or fetch it again.",
        "b-1-py3-none-any.whl: is a damaged archive (File is not a zip file). Build or download it again.",
        "c.tar.gz: isn't a valid wheel or sdist file name",
        f"{CORE.replace('rc1', 'rc2')}: is rocm-sdk-core 7.0.0rc1 according to its metadata",
    ]
    assert not (tmp_path / "out").exists()


OUTSIDE = {
    "../evil.so": "a path that points outside the wheel",
    "demo/../../evil.so": "a path that points outside the wheel",
    "/etc/evil.so": "an absolute path",
    "C:/evil.dll": "an absolute path",
    "demo\\evil.dll": "a name with a backslash, which separates folders on some systems",
    "demo/./evil.so": "a path that isn't normalized",
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_wheel_with_an_escaping_path_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    dist = tmp_path / "dist"
    make_wheel(dist, "good", {"good/__init__.py": b""}, version="1.0rc1")
    wheel = make_wheel(dist, "bad", {"bad/__init__.py": b"", name: b"evil"}, version="1.0rc1")
    message = f"/dist/{wheel.name}!{name}: {OUTSIDE[name]}; expected a path inside the environment."
    check_refused(dist, "1.0", tmp_path / "out", f"{message} Build the wheel again.")


def test_escaping_paths_in_all_wheels_are_reported_with_other_problems(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    one = make_wheel(dist, "a", {"../x": b"", "/y": b""}, version="1.0rc1")
    other = make_wheel(dist, "b", {"../x": b""}, version="1.0rc1")
    (dist / "c-1.0rc1-py3-none-any.whl").write_bytes(b"no zip")
    rest = "expected a path inside the environment. Build the wheel again."
    check_refused(
        dist,
        "1.0",
        tmp_path / "out",
        f"/dist/{one.name}!../x: a path that points outside the wheel; {rest}",
        f"/dist/{one.name}!/y: an absolute path; {rest}",
        f"/dist/{other.name}!../x: a path that points outside the wheel; {rest}",
        "/dist/c-1.0rc1-py3-none-any.whl: is a damaged archive (File is not a zip file). Build or download it again.",
    )


def _break_data(path: Path) -> None:
    """Change a byte of a packed member."""
    with zipfile.ZipFile(path) as archive:
        place = archive.getinfo("_rocm_sdk_core/lib/libamdhip64.so.7").header_offset + 200
    data = bytearray(path.read_bytes())
    data[place] ^= 255
    path.write_bytes(data)


def _break_record(path: Path) -> None:
    """Change a file, but not its line of RECORD."""
    contents = members(path)
    record = "rocm_sdk_core-7.0.0rc1.dist-info/RECORD"
    text = contents.pop(record)
    contents["rocm_sdk_core/__init__.py"] += b"import evil\n"
    del contents["rocm_sdk_core/_cli.py"]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**contents, record: text}.items():
            archive.writestr(name, data)


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "packed bytes": (_break_data, "!_rocm_sdk_core/lib/libamdhip64.so.7"),
    "record": (_break_record, "!rocm_sdk_core-7.0.0rc1.dist-info/RECORD: "),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_all_damaged_wheels_are_reported_and_nothing_is_written(dist: Path, tmp_path: Path, kind: str) -> None:
    damage, named = DAMAGE[kind]
    damage(dist / CORE)
    profiler = next(dist.glob("rocm_profiler*"))
    data = bytearray(profiler.read_bytes())
    data[300] ^= 255
    profiler.write_bytes(data)
    with pytest.raises(ProblemsError) as caught:
        PromoteJob(dist, "7.0.0", tmp_path / "out").run()
    assert f"{profiler}!" in str(caught.value)
    assert f"{dist / CORE}{named}" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_changed_and_missing_files_are_detected_with_record(dist: Path, tmp_path: Path) -> None:
    _break_record(dist / CORE)
    remedy, record = "Build or download the wheel again.", "rocm_sdk_core-7.0.0rc1.dist-info/RECORD"
    expected = (
        f"/dist/{CORE}!{record}: lists rocm_sdk_core/_cli.py, which doesn't exist. {remedy}",
        f"/dist/{CORE}!{record}: has the size 65 for rocm_sdk_core/__init__.py, which has 77 bytes. {remedy}",
    )
    with pytest.raises(ProblemsError) as caught:
        PromoteJob(dist, "7.0.0", tmp_path / "out").run()
    [inner] = [problem for problem in caught.value.problems if isinstance(problem, ProblemsError)] or [caught.value]
    assert [str(problem).replace(str(tmp_path), "") for problem in inner.problems] == list(expected)


def test_targets_without_packages_are_refused_with_the_available_targets(dist: Path, tmp_path: Path) -> None:
    message = (
        "--targets: /dist has no packages for gfx1100, gfx1201; expected targets with packages: gfx906, gfx90a, gfx1030"
    )
    check_refused(dist, "7.0.0", tmp_path / "out", message, targets=("gfx1100", "gfx906", "gfx1201"))
    (dist / "rocm-7.0.0rc1.tar.gz").unlink()
    message = (
        "/dist: has no selector; expected a rocm sdist or wheel, which maps GPUs to packages. "
        "Promote the folder without --targets."
    )
    check_refused(dist, "7.0.0", tmp_path / "out", message, targets=("gfx906",))


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no wheels or sdists; expected the packages of a release candidate"):
        PromoteJob(tmp_path / "empty", "7.0.0", tmp_path / "out").run()


@pytest.mark.parametrize("folder", ["", "family"])
@pytest.mark.parametrize("is_new", [True, False])
def test_if_one_file_cannot_be_moved_into_place_no_file_remains(
    folder: str, is_new: bool, candidates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(candidates, tmp_path / "in" / folder)
    out = tmp_path / "out"
    if not is_new:
        out.mkdir()
    from pathlib import Path as RealPath  # noqa: PLC0415

    real = RealPath.rename

    def rename(self: Path, target: Path) -> Path:
        if "devel" in self.name and target.parent == out / folder:
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(RealPath, "rename", rename)
    with pytest.raises(InputError, match="No space left on device"):
        PromoteJob(tmp_path / "in", "7.0.0", out).run()
    assert out.exists() is not is_new
    assert list(out.rglob("*")) == []


def test_the_second_of_two_promotions_into_one_folder_replaces_nothing(
    candidates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def end_another_first(folder: Path, *, silence: float) -> AbstractContextManager[None]:
        monkeypatch.setattr(promote, "locked_folder", locked_folder)
        PromoteJob(candidates, "7.0", out).run()
        (out / "rocm-7.0.tar.gz").write_bytes(b"of the first")
        return locked_folder(folder, silence=silence)

    monkeypatch.setattr(promote, "locked_folder", end_another_first)
    with pytest.raises(ProblemsError, match=r"rocm-7\.0\.tar\.gz: already exists"):
        PromoteJob(candidates, "7.0", out).run()
    assert (out / "rocm-7.0.tar.gz").read_bytes() == b"of the first"


def test_the_second_of_two_builds_into_one_folder_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with locked_folder(out / "dist"):
        with pytest.raises(WorkError, match="out/dist: is still being written to by another run"):
            build(out, "7.0")
        assert list(out.rglob("*")) == [out / "dist"]
