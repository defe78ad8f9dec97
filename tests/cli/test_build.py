"""``rocwheel build`` as its users call it, and what it shares with ``plan``."""

from __future__ import annotations

import json
import os
import re
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.demo import SAMPLE_SDK
from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


SAMPLE = str(SAMPLE_SDK)


def test_build_lists_the_packages_and_targets(tmp_path: Path) -> None:
    done = rocwheel("build", "--artifact-dir", SAMPLE, "--dest-dir", str(tmp_path))
    assert done.returncode == 0
    assert f"{tmp_path}/dist/rocm-7.0.0.tar.gz" in done.stdout
    assert "version 7.0.0, layout neutral, GPU targets: gfx906, gfx90a, gfx1030" in done.stderr


def test_build_prints_one_versioned_json_object(tmp_path: Path) -> None:
    done = rocwheel("build", "--json", "--quiet", "--artifact-dir", SAMPLE, "--dest-dir", str(tmp_path))
    result = json.loads(done.stdout)
    assert (result["schema"], result["version"]) == ("rocwheel.build/1", "7.0.0")
    sizes = {row["path"]: row["size"] for row in result["distributions"]}
    assert sizes == {str(path): path.stat().st_size for path in (tmp_path / "dist").iterdir()}
    assert done.stderr == ""


def test_an_interrupted_build_is_reported_incomplete(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rocwheel.cli.build.BuildJob.run", interrupt)
    status, text, messages = run("build", SAMPLE, "-d", tmp_path)
    assert (status, text) == (130, "")
    assert messages == f"the build in {tmp_path} is incomplete; run the same command again\ninterrupted\n"


def test_build_reports_the_leftovers_of_killed_builds_it_removed(tmp_path: Path) -> None:
    left = tmp_path / "dist/.rocm-6.0.0.tar.gz.abcdefgh.rocwheel"
    left.parent.mkdir()
    left.touch(0o600)
    done = rocwheel("build", "--artifact-dir", SAMPLE, "--dest-dir", str(tmp_path))
    assert "removed unfinished files from a killed build: .rocm-6.0.0.tar.gz.abcdefgh.rocwheel\n" in done.stderr


def test_help_lists_plan_options_before_build_options() -> None:
    first = ["--dest-dir", "--dry-run", "--artifact-dir"]
    shared = ["--recipe", "--version", "--version-suffix", "--targets", "--default-family", "--selector"]
    shared += ["--devel-compression", "--device-code", "--split-device", "--common", "--retarget", "--variants"]
    shared += ["--rocm", "--platform-tag", "--platform"]
    own = ["--from-manifest", "--level", "--cache", "--jobs", "--scheduler"]
    shown = re.findall(
        r"^  (?:-\w, )?(--[a-z-]+)", rocwheel("build", "--help").stdout.partition("Options:")[2], re.MULTILINE
    )
    assert shown == [*first, *shared, *own, "--json", "--quiet", "--verbose", "--help"]


TAG_VARIABLE = "ROCM_SDK_WHEEL_PLATFORM_TAG"


@pytest.mark.parametrize(
    ("variable", "options", "tag"),
    [
        ("manylinux_2_28_x86_64", [], "manylinux_2_28_x86_64"),
        ("linux-x86_64", [], "linux_x86_64"),
        ("manylinux_2_28_x86_64", ["--platform-tag", "manylinux_2_34_x86_64"], "manylinux_2_34_x86_64"),
        ("nonsense", ["--platform-tag", "manylinux_2_34_x86_64"], "manylinux_2_34_x86_64"),
        ("", [], "manylinux_2_5_x86_64"),
    ],
    ids=["variable", "as Python says it", "option wins", "option hides a wrong variable", "empty variable"],
)
def test_the_platform_tag_variable_of_the_reference_is_used(variable: str, options: list[str], tag: str) -> None:
    done = rocwheel(
        "build", "--dry-run", "--artifact-dir", SAMPLE, *options, "--json", environ={TAG_VARIABLE: variable}
    )
    wheels = json.loads(done.stdout)["wheels"]
    assert {wheel["name"]["tag"] for wheel in wheels if wheel["package"] == "libraries"} == {f"py3-none-{tag}"}


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("nonsense", "is 'nonsense', which installers don't accept"),
        ("manylinux_2_28_aarch64", "is 'manylinux_2_28_aarch64', but the files are for Linux on x86_64"),
    ],
)
def test_an_invalid_platform_tag_names_the_variable(variable: str, said: str) -> None:
    done = rocwheel("build", "--dry-run", "--artifact-dir", SAMPLE, environ={TAG_VARIABLE: variable})
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{TAG_VARIABLE}: {said}" in done.stderr


def test_several_artifact_folders_are_combined(tmp_path: Path) -> None:
    # Given the sample SDK in two folders, with one artifact in both
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    for number, archive in enumerate(sorted(SAMPLE_SDK.glob("*.tar.xz"))):
        for folder in {(one, two)[number % 2], one if archive.name.startswith("base_lib") else two}:
            (folder / archive.name).symlink_to(archive)
    united = rocwheel("build", "--dry-run", "--artifact-dir", str(one), "--artifact-dir", str(two), "--json")
    whole = rocwheel("build", "--dry-run", "--artifact-dir", SAMPLE, "--json")
    assert united.returncode == 0, united.stderr
    members = [
        [[member["path"] for member in wheel["members"]] for wheel in json.loads(done.stdout)["wheels"]]
        for done in (united, whole)
    ]
    assert members[0] == members[1]


def test_an_artifact_that_differs_between_two_folders_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "base_lib_generic"
    (other / "stage").mkdir(parents=True)
    (other / "artifact_manifest.txt").write_text("stage\n")
    done = rocwheel("build", "--dry-run", "--artifact-dir", SAMPLE, "--artifact-dir", str(tmp_path), "--quiet")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {SAMPLE}/base_lib_generic.tar.")
    assert f" is a different artifact from {other}: they differ in " in done.stderr


def test_old_options_are_accepted_with_a_note(tmp_path: Path) -> None:
    old = ["--linux-amdgpu-families", "gfx906,gfx1030", "--devel-tarball-compression", "--no-wheel-compression"]
    done = rocwheel("build", "--artifact-dir", SAMPLE, "--dest-dir", str(tmp_path), *old)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(
        "note: --devel-tarball-compression is now --devel-compression xz\n"
        "note: --no-wheel-compression is now --level 0\n"
    )
    (devel,), (core,) = ((tmp_path / "dist").glob(f"rocm_sdk_{name}-*.whl") for name in ("devel", "core"))
    assert "rocm_sdk_devel/_devel.tar.xz" in zipfile.ZipFile(devel).namelist()
    members = zipfile.ZipFile(core).infolist()
    assert {member.compress_type for member in members if "/lib/" in member.filename} == {zipfile.ZIP_STORED}


def test_build_with_no_build_packages_leaves_the_package_trees(tmp_path: Path) -> None:
    words = ("build", "--artifact-dir", SAMPLE, "--dest-dir", str(tmp_path), "--no-build-packages")
    done = rocwheel(*words)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "rocm",
        "rocm-profiler",
        "rocm-sdk-core",
        "rocm-sdk-devel",
        "rocm-sdk-device-gfx1030",
        "rocm-sdk-device-gfx906",
        "rocm-sdk-device-gfx90a",
        "rocm-sdk-libraries",
    ]
    assert f"{tmp_path}/rocm: 47 files\n" in done.stdout
    assert (tmp_path / "rocm/pyproject.toml").is_file()
    assert os.access(tmp_path / "rocm-sdk-core/_rocm_sdk_core/bin/rocminfo", os.X_OK)
    assert (tmp_path / "rocm-sdk-core/rocm_sdk_core-7.0.0.dist-info/RECORD").is_file()


def test_build_refuses_its_own_artifact_folder_as_destination(tmp_path: Path) -> None:
    (tmp_path / "artifacts").symlink_to(SAMPLE)
    done = rocwheel("build", SAMPLE, "--dest-dir", str(tmp_path / "artifacts"))
    assert (done.returncode, done.stderr) == (
        2,
        f"error: --dest-dir: {tmp_path}/artifacts is the artifact folder; expected a different folder\n",
    )


def test_build_of_trees_refuses_to_replace_existing_trees(tmp_path: Path) -> None:
    (tmp_path / "rocm").mkdir()
    (tmp_path / "rocm/mine").touch()
    done = rocwheel("build", SAMPLE, "--dest-dir", str(tmp_path), "--no-build-packages")
    assert done.returncode == 2
    assert (
        f"error: {tmp_path}/rocm: already exists; expected a new or empty folder. "
        "Choose another folder, or remove this folder.\n" in done.stderr
    )
    assert [path.name for path in tmp_path.iterdir()] == ["rocm"]


@pytest.mark.parametrize(
    ("words", "with_"), [("--level 3", "--level"), ("--scheduler tcp://127.0.0.1:1", "--scheduler")]
)
def test_no_build_packages_is_refused_with_level_or_scheduler(words: str, with_: str, tmp_path: Path) -> None:
    done = rocwheel("build", SAMPLE, "--dest-dir", str(tmp_path), "--no-build-packages", *words.split())
    assert (done.returncode, done.stderr) == (
        2,
        f"error: --no-build-packages: can't be used with {with_}, because it builds no packages. Remove one of them.\n",
    )


def test_build_warns_about_distributions_of_earlier_builds(tmp_path: Path) -> None:
    command = ["build", "--artifact-dir", SAMPLE, "--dest-dir", str(tmp_path)]
    assert rocwheel(*command, "--version", "7.0.0").returncode == 0
    done = rocwheel(*command, "--version", "7.1.0")
    assert done.returncode == 0
    place = f"{tmp_path}/dist"
    assert (
        f"warning: {place}: contains packages of version 7.0.0, which remain next to the packages of version 7.1.0\n"
        in done.stderr
    )
    assert f"warning: {tmp_path}/dist: contains distributions that are not from this build: rocm-7.0.0.tar.gz, " in (
        done.stderr
    )
    result = json.loads(rocwheel(*command, "--version", "7.2.0", "--json", "--quiet").stdout)
    assert [(warning["kind"], len(warning["files"])) for warning in result["warnings"]] == [("earlier-build", 16)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--level", "13"], "--level: is '13'; expected a level from 0 to 12"),
        (["--version", "one"], "--version: is 'one'; expected a PEP 440 version"),
        (["--targets", "gfx942"], "has no artifacts for gfx942"),
        (["--targets", "gfx94"], "'gfx94' isn't a known GPU target, family, product, or policy. Similar names: gfx942"),
        (["--targets", "RX 7900 XTX"], "has no artifacts for gfx1100"),
        (["--recipe", "none.toml"], "none.toml: can't be read (No such file or directory). Check --recipe."),
        (["--default-family", "gfx942"], "--default-family: 'gfx942' has no packages; expected one of gfx906"),
        (["--version-suffix", "a b"], "--version-suffix: is 'a b'; expected letters, digits, and underscores"),
        (["--selector", "egg"], "--selector: is 'egg'; expected one of sdist, wheel"),
        (["--jobs", "-1"], "--jobs: is '-1'; expected a whole number, at least 0"),
        (["--platform-tag", "linux x"], "--platform-tag: is 'linux x'"),
        (["--platform-tag", "any"], "--platform-tag: is 'any', but the files are for Linux on x86_64; expected a tag"),
        (
            ["--platform-tag", "win_amd64", "-q"],
            "--platform-tag: is 'win_amd64', but the files are for Linux on x86_64",
        ),
        (["--platform-tag", "musllinux_1_2_x86_64", "-q"], "--platform-tag: is 'musllinux_1_2_x86_64', but bin/"),
    ],
)
def test_invalid_usage_is_reported_in_one_message_and_nothing_is_written(
    tmp_path: Path, arguments: list[str], expected: str
) -> None:
    done = rocwheel("build", "--artifact-dir", SAMPLE, "--dest-dir", str(tmp_path / "out"), *arguments)
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--version", "x y"], "--version: is 'x y'; expected a PEP 440 version"),
        (["--version", "one"], "--version: is 'one'; expected a PEP 440 version"),
        (["--targets", ""], "--targets: doesn't specify a GPU target; expected at least one"),
        (["--rocm", ""], "--rocm: ''; expected a version such as 6.4"),
        (["--rocm", "banana"], "--rocm: 'banana'; expected a version such as 6.4"),
        (
            ["--platform-tag", "manylinx_2_28_x86_64"],
            "--platform-tag: is 'manylinx_2_28_x86_64', which installers don't accept; expected a tag that",
        ),
        (["--platform-tag", "linux"], "such as linux_x86_64. Did you mean linux_x86_64?"),
        (["--platform-tag", "foo", "-q"], "--platform-tag: is 'foo', which installers don't accept"),
        (["--rocm", "x", "--version", "y", "--platform-tag", "z"], "options: 3 problems"),
    ],
)
@pytest.mark.parametrize("is_dry", [False, True], ids=["build", "plan"])
def test_invalid_options_are_reported_before_any_input_is_read(
    tmp_path: Path, is_dry: bool, arguments: list[str], expected: str
) -> None:
    place = ["--dry-run"] if is_dry else ["--dest-dir", str(tmp_path / "out")]
    done = rocwheel("build", "--artifact-dir", str(tmp_path / "absent"), *place, *arguments)
    assert done.returncode == 2
    assert expected in done.stderr.replace("\n", " ")


def test_a_destination_that_is_a_file_is_reported_before_any_input_is_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    done = rocwheel("build", "--artifact-dir", str(tmp_path / "absent"), "--dest-dir", str(file))
    assert done.returncode == 2
    assert f"{file}: isn't a folder; expected an output folder. Change --dest-dir." in done.stderr.replace("\n", " ")


def test_repeated_builds_into_one_folder_produce_the_same_files(tmp_path: Path) -> None:
    runs = []
    for seed in "12":
        command = ["build", "-q", "--artifact-dir", SAMPLE, "--dest-dir", str(tmp_path)]
        assert rocwheel(*command, environ={"PYTHONHASHSEED": seed}).returncode == 0
        runs.append({path.name: path.read_bytes() for path in (tmp_path / "dist").iterdir()})
    assert runs[0] == runs[1]


def test_a_build_for_selected_targets_omits_packages_for_other_targets(tmp_path: Path) -> None:
    done = rocwheel("build", SAMPLE, "--dest-dir", str(tmp_path), "--targets", "gfx906")
    assert done.returncode == 0
    devices = {path.name.split("-")[0] for path in (tmp_path / "dist").glob("rocm_sdk_device_*")}
    assert devices == {"rocm_sdk_device_gfx906"}


def test_the_families_option_of_the_reference_does_not_filter_targets(tmp_path: Path) -> None:
    words = ("build", "--artifact-dir", SAMPLE, "--dest-dir", str(tmp_path), "--linux-amdgpu-families", "gfx906")
    assert rocwheel(*words).returncode == 0
    assert len(list((tmp_path / "dist").glob("rocm_sdk_device_*"))) == 3


def test_swapped_artifact_and_destination_folders_are_recognized(tmp_path: Path) -> None:
    done = rocwheel("build", str(tmp_path / "packages"), "--dest-dir", SAMPLE)
    assert done.returncode == 2
    assert done.stderr == (
        f"error: --dest-dir: is {SAMPLE}, a folder of artifacts; expected a folder for packages. "
        f"Run rocwheel build {SAMPLE} --dest-dir {tmp_path}/packages.\n"
    )
