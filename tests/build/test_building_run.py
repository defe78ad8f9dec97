"""Tests of `rocwheel.build.building`."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import zipfile
from email import message_from_bytes
from typing import TYPE_CHECKING

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename

from rocwheel.artifacts.transfer import extract_archives
from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.planning.options import PlanOptions
from rocwheel.core.cache import CachePlace
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.core.progress import Silent
from rocwheel.demo import SAMPLE_SDK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = pytest.mark.slow

DEVICE = "rocm_sdk_device_gfx906-7.0.0-py3-none-manylinux_2_5_x86_64.whl"

PLAIN_NAMES = {
    "_rocm_profiler/lib/librocprof-sys.so",
    *(f"_rocm_sdk_core/lib/lib{name}.so" for name in ("amd_smi", "amdhip64", "hiprtc", "hsa-runtime64", "roctx64")),
}
"""Libraries that stand for those with a version in their name."""


def wheels(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.whl"))


def elf_members(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            if data.startswith(b"\x7fELF") and data[18] == 62:
                yield name, data


def run_path(data: bytes) -> tuple[str | None, str | None]:
    """Return DT_RPATH and DT_RUNPATH as pyelftools reads them."""
    found: dict[str, str] = {}
    for segment in ELFFile(io.BytesIO(data)).iter_segments():
        if isinstance(segment, DynamicSegment):
            tags = {tag.entry.d_tag: tag for tag in segment.iter_tags()}
            names = {"DT_RPATH": "rpath", "DT_RUNPATH": "runpath"}
            found |= {name: getattr(tags[name], field) for name, field in names.items() if name in tags}
    return found.get("DT_RPATH"), found.get("DT_RUNPATH")


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_the_sample_sdk_makes_every_kind_of_package(sample_dist: Path) -> None:
    assert [path.name for path in sorted(sample_dist.iterdir())] == [
        "rocm-7.0.0.tar.gz",
        "rocm_profiler-7.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "rocm_sdk_core-7.0.0-py3-none-manylinux_2_17_x86_64.whl",
        "rocm_sdk_devel-7.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "rocm_sdk_device_gfx1030-7.0.0-py3-none-manylinux_2_5_x86_64.whl",
        DEVICE,
        "rocm_sdk_device_gfx90a-7.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "rocm_sdk_libraries-7.0.0-py3-none-manylinux_2_5_x86_64.whl",
    ]


def test_the_number_of_workers_and_the_folder_do_not_change_the_bytes(sample_dist: Path, tmp_path: Path) -> None:
    BuildJob(PlanJob(SAMPLE_SDK), tmp_path / "elsewhere", jobs=5).run()
    assert digests(tmp_path / "elsewhere/dist") == digests(sample_dist)


def test_the_date_comes_only_from_source_date_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    BuildJob(PlanJob(SAMPLE_SDK), tmp_path).run()
    with zipfile.ZipFile(tmp_path / "dist" / DEVICE) as archive:
        assert {info.date_time for info in archive.infolist()} == {(2023, 11, 14, 22, 13, 20)}


def test_every_wheel_is_a_valid_zip_without_symlinks(sample_dist: Path) -> None:
    for wheel in wheels(sample_dist):
        with zipfile.ZipFile(wheel) as archive:
            assert archive.testzip() is None
            assert {info.external_attr >> 16 for info in archive.infolist()} <= {0o100644, 0o100755}


def test_record_lists_every_member_with_its_hash(sample_dist: Path) -> None:
    for wheel in wheels(sample_dist):
        with zipfile.ZipFile(wheel) as archive:
            name = next(name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
            rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(archive.read(name).decode()))}
            assert rows.pop(name) == ["", ""]
            assert archive.namelist()[-1] == name
            for member in archive.namelist()[:-1]:
                data = archive.read(member)
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                assert rows.pop(member) == [f"sha256={digest}", str(len(data))]
            assert not rows


def test_metadata_is_valid_for_the_reference_parser_and_matches_the_file_name(sample_dist: Path) -> None:
    for wheel in wheels(sample_dist):
        name, version, _, tags = parse_wheel_filename(wheel.name)
        with zipfile.ZipFile(wheel) as archive:
            folder = f"{name.replace('-', '_')}-{version}.dist-info"
            metadata = Metadata.from_email(archive.read(f"{folder}/METADATA"), validate=True)
            facts = message_from_bytes(archive.read(f"{folder}/WHEEL"))
        assert (metadata.name, metadata.version, metadata.metadata_version) == (name, version, "2.4")
        assert (facts["Root-Is-Purelib"], {facts["Tag"]}) == ("false", {str(tag) for tag in tags})


def test_license_files_are_at_the_paths_in_the_metadata(sample_dist: Path) -> None:
    wheel = next(path for path in wheels(sample_dist) if path.name.startswith("rocm_sdk_core"))
    with zipfile.ZipFile(wheel) as archive:
        folder = "rocm_sdk_core-7.0.0.dist-info"
        files = message_from_bytes(archive.read(f"{folder}/METADATA")).get_all("License-File", [])
        assert files
        assert all(f"{folder}/licenses/{file}" in archive.namelist() for file in files)


def test_run_paths_use_one_tag_and_lead_to_package_folders(sample_dist: Path) -> None:
    everything = {name for wheel in wheels(sample_dist) for name in zipfile.ZipFile(wheel).namelist()}
    folders = {os.path.dirname(name) for name in everything}  # noqa: PTH120 (a path inside an archive)
    seen = 0
    for wheel in wheels(sample_dist):
        for name, data in elf_members(wheel):
            rpath, runpath = run_path(data)
            if name in PLAIN_NAMES:
                assert (rpath, runpath) == ("$ORIGIN", None)
                continue
            assert runpath is None
            for entry in rpath.split(":") if rpath else []:
                place = os.path.normpath(entry.replace("$ORIGIN", os.path.dirname(name)))  # noqa: PTH120
                assert place in folders, (name, entry)
                seen += 1
    assert seen > 10


def test_a_library_with_dependencies_in_other_packages_has_the_exact_run_path(sample_dist: Path) -> None:
    wheel = next(path for path in wheels(sample_dist) if path.name.startswith("rocm_sdk_libraries"))
    found = dict(elf_members(wheel))
    assert run_path(found["_rocm_sdk_libraries/lib/libhipsparse.so.4"])[0] == "$ORIGIN:$ORIGIN/../../_rocm_sdk_core/lib"


def test_every_library_resolves_with_only_its_run_path(sample_dist: Path, tmp_path: Path) -> None:
    for wheel in wheels(sample_dist):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path)
    libraries = [path for path in tmp_path.rglob("lib*.so*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    assert len(libraries) > 15
    for library in libraries:
        command = ["/lib64/ld-linux-x86-64.so.2", "--list", str(library)]
        listed = subprocess.run(command, env={}, capture_output=True, text=True, check=True).stdout
        assert "not found" not in listed, library


def test_a_per_family_layout_builds_one_folder_for_each_family(tmp_path: Path) -> None:
    artifacts = tmp_path / "artifacts"
    artifacts.mkdir()
    for archive in SAMPLE_SDK.glob("*.tar.xz"):
        name = archive.name.replace("gfx90a:xnack+", "gfx90a-x")
        if "gfx90a-x" not in name and "gfx1030" not in name:
            target = name.replace("gfx906", "gfx906-dgpu").replace("gfx90a", "gfx90a-dcgpu")
            (artifacts / target).write_bytes(archive.read_bytes())
    recipe = tmp_path / "family.toml"
    default = (SAMPLE_SDK.parent / "build/rocm.toml").read_text()
    recipe.write_text(default.replace("schema = 1", 'schema = 1\nlayout = "per-family"'))
    BuildJob(PlanJob(artifacts, recipe), tmp_path).run()
    assert sorted(
        str(path.relative_to(tmp_path / "dist")) for path in tmp_path.glob("dist/**/*.*") if path.is_file()
    ) == [
        "gfx906-dgpu/rocm-7.0.0.tar.gz",
        "gfx906-dgpu/rocm_sdk_devel-7.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "gfx90a-dcgpu/rocm-7.0.0.tar.gz",
        "gfx90a-dcgpu/rocm_sdk_devel-7.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "rocm_profiler-7.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "rocm_sdk_core-7.0.0-py3-none-manylinux_2_17_x86_64.whl",
        "rocm_sdk_libraries_gfx906_dgpu-7.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "rocm_sdk_libraries_gfx90a_dcgpu-7.0.0-py3-none-manylinux_2_5_x86_64.whl",
    ]


def test_a_platform_tag_can_be_forced(tmp_path: Path) -> None:
    options = PlanOptions(platform_tag="manylinux_2_28_x86_64")
    plan = PlanJob(SAMPLE_SDK, options=options).run()
    assert {wheel.name.tag for wheel in plan.wheels} == {"py3-none-manylinux_2_28_x86_64"}


def test_a_build_removes_killed_builds_and_warns_about_earlier_builds(tmp_path: Path) -> None:
    dist_dir = tmp_path / "dist"
    dist_dir.mkdir()
    (dist_dir / ".rocm-6.0.0.tar.gz.abcdefgh.rocwheel").touch(0o600)
    (dist_dir / "rocm-6.0.0.tar.gz").touch()
    _, result = BuildJob(PlanJob(SAMPLE_SDK), tmp_path).run()
    assert result.removed == (f"{dist_dir}/.rocm-6.0.0.tar.gz.abcdefgh.rocwheel",)
    assert [(warning.kind, warning.files) for warning in result.warnings] == [("earlier-build", ("rocm-6.0.0.tar.gz",))]
    assert not [path for path in dist_dir.iterdir() if path.name.startswith(".")]


def test_a_build_that_cannot_be_planned_removes_nothing(tmp_path: Path) -> None:
    left = tmp_path / "dist/.rocm-6.0.0.tar.gz.abcdefgh.rocwheel"
    left.parent.mkdir()
    left.touch(0o600)
    with pytest.raises(RocwheelError):
        BuildJob(PlanJob(tmp_path / "none"), tmp_path).run()
    assert left.exists()


class Counting(Silent):
    """A progress that adds up what is done of each step."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}
        self.done: dict[str, int] = {}

    def begin(self, label: str, total: int) -> None:
        """Start a step."""
        self.label = label
        self.totals[label] = total
        self.done[label] = 0

    def advance(self, amount: int) -> None:
        """Add to what is done, which never is more than the total."""
        self.done[self.label] += amount
        assert 0 <= self.done[self.label] <= self.totals[self.label]


@pytest.mark.parametrize("options", [PlanOptions(), PlanOptions(device_code="compress")], ids=["plain", "edited"])
def test_build_progress_ends_at_its_total(tmp_path: Path, options: PlanOptions) -> None:
    place = CachePlace(tmp_path / "cache")
    for _ in ("packed", "left alone"):
        progress = Counting()
        BuildJob(PlanJob(SAMPLE_SDK, options=options), tmp_path, cache=place).run(progress=progress)
        assert progress.done["building"] == progress.totals["building"] > 300_000


def test_stored_members_are_not_deflated(tmp_path: Path) -> None:
    BuildJob(PlanJob(SAMPLE_SDK), tmp_path, level=0).run()
    with zipfile.ZipFile(tmp_path / "dist" / DEVICE) as archive:
        kernels = [info for info in archive.infolist() if info.filename.endswith(".co")]
        assert kernels
        assert all(info.compress_type == zipfile.ZIP_STORED for info in kernels)


@pytest.mark.parametrize("compression", ["xz", "zst"])
def test_the_devel_tar_is_the_same_with_every_compression(sample_dist: Path, tmp_path: Path, compression: str) -> None:
    options = PlanOptions(devel_compression=compression)  # type: ignore[arg-type]
    BuildJob(PlanJob(SAMPLE_SDK, options=options), tmp_path).run()

    def member(folder: Path, name: str) -> bytes:
        wheel = next(path for path in wheels(folder) if path.name.startswith("rocm_sdk_devel"))
        with zipfile.ZipFile(wheel) as archive:
            assert archive.testzip() is None
            return archive.read(f"rocm_sdk_devel/{name}")

    packed = tmp_path / "devel"
    packed.write_bytes(member(tmp_path / "dist", f"_devel.tar.{compression}"))
    tool = {"xz": "xz", "zst": "zstd"}[compression]
    unpacked = subprocess.run([tool, "-dc", str(packed)], capture_output=True, check=True).stdout
    assert unpacked == member(sample_dist, "_devel.tar")


def broken(tmp_path: Path, relative: str, data: bytes) -> Path:
    """Make artifacts out of one file."""
    stage = tmp_path / "artifacts/core-hip_lib_generic/stage"
    (stage / relative).parent.mkdir(parents=True)
    (stage / relative).write_bytes(data)
    (stage.parent / "artifact_manifest.txt").write_text("stage\n")
    return tmp_path / "artifacts"


def test_a_truncated_library_stops_the_build_and_is_named(sample_dist: Path, tmp_path: Path) -> None:
    core = next(path for path in wheels(sample_dist) if path.name.startswith("rocm_sdk_core"))
    data = dict(elf_members(core))["_rocm_sdk_core/lib/libamdhip64.so.7"]
    artifacts = broken(tmp_path, "lib/libx.so.1", data[: len(data) // 2])
    with pytest.raises(ProblemsError, match=re.escape("core-hip_lib_generic: lib/libx.so.1: ")):
        BuildJob(PlanJob(artifacts), tmp_path / "out").run()
    assert not (tmp_path / "out").exists()


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RocwheelError, match=re.escape(str(tmp_path / "none"))):
        BuildJob(PlanJob(tmp_path / "none"), tmp_path / "out").run()


def test_a_malformed_date_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    expected = "SOURCE_DATE_EPOCH: is 'yesterday'; expected a whole number of seconds since 1970. Correct or unset it."
    with pytest.raises(InputError, match=re.escape(expected)):
        BuildJob(PlanJob(SAMPLE_SDK), tmp_path).run()


def test_a_file_in_place_of_the_output_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dist").write_text("a file")
    with pytest.raises(InputError, match="isn't a folder; expected an output folder"):
        BuildJob(PlanJob(SAMPLE_SDK), tmp_path).run()
    assert [path.name for path in tmp_path.iterdir()] == ["dist"]


def test_a_full_disk_is_reported_in_one_line_and_leaves_no_partial_wheel(tmp_path: Path) -> None:
    artifacts = tmp_path / "artifacts"
    extract_archives(sorted(SAMPLE_SDK.glob("*.tar.xz")), artifacts)
    build = f"-m rocwheel build -q --artifact-dir {artifacts} --dest-dir {tmp_path}"
    command = f"ulimit -f 20; exec {sys.executable} {build}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "can't be written (File too large). Check the free space and the permissions of the folder." in done.stderr
    assert "Traceback" not in done.stderr
    assert not [path for path in tmp_path.glob("dist/*") if path.suffix not in (".whl", ".gz")]


def test_compressed_device_code_keeps_its_offset_and_its_targets(sample_dist: Path, tmp_path: Path) -> None:
    BuildJob(PlanJob(SAMPLE_SDK, options=PlanOptions(device_code="compress")), tmp_path).run()
    name = "_rocm_sdk_libraries/lib/librocsparse.so.1"
    before, after = (
        dict(elf_members(next(path for path in wheels(folder) if "libraries" in path.name)))[name]
        for folder in (sample_dist, tmp_path / "dist")
    )
    assert len(after) == len(before)
    assert run_path(after) == run_path(before)
    assert (before.count(b"CCOB"), after.count(b"CCOB")) == (0, 1)
    assert after.index(b"CCOB") == before.index(b"__CLANG_OFFLOAD_BUNDLE__")
    assert device_targets(memoryview(after), name=name) == device_targets(memoryview(before), name=name)


def test_compression_is_refused_for_a_release_that_cannot_read_it(tmp_path: Path) -> None:
    options = PlanOptions(device_code="compress", rocm="5.2.3")
    with pytest.raises(
        InputError, match=re.escape("--device-code compress: compressed bundles of version 2, which ROCm")
    ):
        BuildJob(PlanJob(SAMPLE_SDK, options=options), tmp_path).run()
    assert list(tmp_path.iterdir()) == []
