"""Tests of `rocwheel.report.make_report`."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.demo import SAMPLE_SDK
from rocwheel.report.make_report import code_for, make_matrix, make_report, read_graph
from rocwheel.report.values import (
    Code,
    Copies,
    Copy,
    FileFacts,
    Graph,
    Kind,
    Load,
    Loading,
    LostCode,
    MatrixRow,
    PackageFacts,
    Part,
)
from rocwheel.wheels.zip_reader import iter_member
from tests.support.artifacts import artifact
from tests.support.bundles import bundle_of
from tests.support.fat_libraries import build_fat_library, make_bundle
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.pe_files import pe_file
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rocwheel.report.values import Report
    from rocwheel.wheels.zip_reader import ZipMember


def report_on(*paths: Path, left_out: Path | None = None) -> Report:
    """Return the report on what can be read in full."""
    unread: list[RocwheelError] = []
    found = make_report(paths, unread=unread, left_out=left_out)
    assert unread == []
    return found


def size_on_disk(folder: Path) -> int:
    """Return what ``du --apparent-size`` counts, folders left out."""
    inodes = {path.lstat().st_ino: path.lstat().st_size for path in folder.rglob("*") if not _is_folder(path)}
    return sum(inodes.values())


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def test_files_and_headers_of_a_wheel_add_up_to_its_size(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "alpha", {"a/b.py": b"x" * 1000, "a/c.bin": os.urandom(500)})
    report = report_on(wheel)
    [package] = report.packages
    with zipfile.ZipFile(wheel) as archive:
        infos = archive.infolist()
    assert (package.label, package.kind, package.version) == ("alpha", Kind.WHEEL, "1.0")
    assert package.packed == wheel.stat().st_size
    assert package.rest == wheel.stat().st_size - sum(info.compress_size for info in infos)
    assert package.size == sum(info.file_size for info in infos)


def test_the_total_for_a_folder_matches_its_size_on_disk(tmp_path: Path) -> None:
    (tmp_path / "a/__pycache__").mkdir(parents=True)
    (tmp_path / "a/one").write_bytes(b"12345")
    (tmp_path / "a/__pycache__/one.pyc").write_bytes(b"123")
    os.link(tmp_path / "a/one", tmp_path / "again")
    (tmp_path / "link").symlink_to("a/one")
    report = report_on(tmp_path)
    assert report.totals.size == size_on_disk(tmp_path) == 5 + 3 + len("a/one")
    assert {file.path: file.same_as for file in report.files if file.same_as} == {"again": "a/one"} or {
        file.path: file.same_as for file in report.files if file.same_as
    } == {"a/one": "again"}


def test_a_file_hard_linked_in_two_folders_counts_once(tmp_path: Path) -> None:
    for name in ("t1/x", "t2/x"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "t1/x/one").write_bytes(b"12345")
    os.link(tmp_path / "t1/x/one", tmp_path / "t2/x/one")
    report = report_on(tmp_path / "t1/x", tmp_path / "t2/x")
    assert report.totals.size == size_on_disk(tmp_path) == 5
    assert [file.same_as for file in report.files] == ["", "one"]


def test_two_folders_with_the_same_name_are_distinguished(tmp_path: Path) -> None:
    for name in ("t1/x", "t2/x", "y"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "one").write_bytes(b"1")
    report = report_on(tmp_path / "t1/x", tmp_path / "t2/x", tmp_path / "y")
    assert [package.label for package in report.packages] == [str(tmp_path / "t1/x"), str(tmp_path / "t2/x"), "y"]


def test_a_path_inside_another_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a/sub").mkdir(parents=True)
    (tmp_path / "a/sub/one").write_bytes(b"1")
    with pytest.raises(InputError, match=r"is in .*/a, which the report already includes"):
        report_on(tmp_path / "a/sub", tmp_path / "a")


@needs_compiler
def test_each_large_member_of_a_wheel_is_inflated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = build_fat_library(tmp_path / "libx.so", [make_bundle(0, "gfx906")])
    library.write_bytes(library.read_bytes() + bytes(1 << 20))
    wheel = make_wheel(tmp_path / "dist", "alpha", {"a/libx.so": library, "a/data": b"x" * (1 << 20)})
    inflated: Counter[str] = Counter()

    def counted(member: ZipMember, *, copy_to: Callable[[bytes], None] | None = None) -> Iterator[bytes]:
        inflated[member.name] += 1
        return iter_member(member, copy_to=copy_to)

    monkeypatch.setattr("rocwheel.wheels.zip_reader.iter_member", counted)
    report = report_on(wheel)
    assert report.savings is not None
    assert [one.path for one in report.graph.files] == ["a/libx.so"]
    assert (inflated["a/libx.so"], inflated["a/data"]) == (1, 1)


class Steps:
    """A `Progress` that notes how much of each step was done, and how much there was."""

    def __init__(self) -> None:
        self.found: dict[str, list[int]] = {}

    def begin(self, label: str, total: int) -> None:
        """Note a step."""
        self._current = self.found[label] = [0, total]

    def advance(self, amount: int) -> None:
        """Add to what is done."""
        self._current[0] += amount

    def end(self) -> None:
        """Do nothing."""


@needs_compiler
def test_every_step_reports_its_progress(tmp_path: Path) -> None:
    library = build_fat_library(tmp_path / "libx.so", [make_bundle(0, "gfx906")])
    wheel = make_wheel(tmp_path / "dist", "alpha", {"a/libx.so": library, "a/x": b"12345"})
    artifact(tmp_path / "in", "base_lib_generic", {"x": b"12345"})
    steps = Steps()
    make_report([wheel, tmp_path / "in"], unread=[], progress=steps)
    assert {label: total for label, (_, total) in steps.found.items()} == {
        "reading files": unpacked_size(wheel) + 5,
        "looking for duplicates": 5,
        "measuring possible savings": library.stat().st_size,
        "finding which files load which libraries": 0,
    }
    assert [label for label, (done, total) in steps.found.items() if done != total] == []


def unpacked_size(wheel: Path) -> int:
    with zipfile.ZipFile(wheel) as archive:
        return sum(info.file_size for info in archive.infolist())


def test_artifacts_with_the_same_name_form_one_package_with_components(tmp_path: Path) -> None:
    artifact(tmp_path, "blas_lib_gfx906", {"lib/x.so": b"123"})
    artifact(tmp_path, "blas_dev_generic", {"include/x.h": b"1"})
    artifact(tmp_path, "base_lib_generic", {"share/x": b"12"})
    report = report_on(tmp_path)
    found = {(report.packages[one.package].label, one.component): (one.path, one.size) for one in report.files}
    assert found == {
        ("blas", "lib"): ("lib/x.so", 3),
        ("blas", "dev"): ("include/x.h", 1),
        ("base", "lib"): ("share/x", 2),
    }


def test_the_sample_sdk_has_code_for_its_targets() -> None:
    assert {"gfx1030", "gfx90a:xnack+"} <= set(report_on(SAMPLE_SDK).totals.targets)


def test_the_sample_sizes_match_its_archives() -> None:
    """Each has a list of its folders besides, which is no file of the SDK."""
    sizes = [size for path in SAMPLE_SDK.glob("*.tar.xz") for size in file_sizes(path)]
    totals = report_on(SAMPLE_SDK).totals
    assert (totals.files, totals.size) == (len(sizes), sum(sizes))
    assert len(sizes) > 200


def file_sizes(archive: Path) -> list[int]:
    with tarfile.open(archive) as tar:
        infos = [info for info in tar if not info.isdir() and info.name != "artifact_manifest.txt"]
        return [len(info.linkname) if info.issym() else info.size for info in infos]


@pytest.mark.slow
def test_the_sizes_of_a_build_match_its_wheels_and_their_unpacked_files(sample_dist: Path, tmp_path: Path) -> None:
    for wheel in sample_dist.glob("*.whl"):
        subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, tmp_path / wheel.name], check=True)
    with tarfile.open(next(sample_dist.glob("*.tar.gz"))) as sdist:
        unpacked = sum(info.size for info in sdist)
    totals = report_on(sample_dist).totals
    assert totals.packed == sum(path.stat().st_size for path in sample_dist.iterdir())
    assert totals.size == size_on_disk(tmp_path) + unpacked


@needs_compiler
def test_a_fat_library_is_divided_by_target_and_the_parts_add_up(tmp_path: Path) -> None:
    library = build_fat_library(tmp_path / "tree/libx.so", [make_bundle(0, "gfx906 gfx90a:xnack+")])
    [file] = report_on(library.parent).files
    parts = {part.target: part.size for part in file.parts}
    assert list(parts) == ["", "gfx906", "gfx90a:xnack+"]
    assert (parts["gfx906"], parts["gfx90a:xnack+"]) == (len("code of unit 0 for gfx906") * 100, 3100 + 100)
    assert sum(parts.values()) == library.stat().st_size


def test_packed_sizes_of_parts_add_up_to_the_size_of_the_member(tmp_path: Path) -> None:
    report = report_on(make_wheel(tmp_path, "alpha", {"k.hsaco": bundle_of("gfx942", "gfx1030")}))
    [file] = [file for file in report.files if file.path == "k.hsaco"]
    assert [part.target for part in file.parts] == ["", "gfx942", "gfx1030"]
    assert report.totals.targets == ("gfx942", "gfx1030")
    assert sum(part.packed or 0 for part in file.parts) == file.packed


def test_a_kernel_file_counts_for_the_target_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "TensileLibrary_gfx906.dat").write_bytes(b"12345")
    (tmp_path / "notes_gfx906.txt").write_bytes(b"12345")
    files = {file.path: file.parts for file in report_on(tmp_path).files}
    assert files == {"TensileLibrary_gfx906.dat": (Part("gfx906", 5),), "notes_gfx906.txt": ()}


def test_a_damaged_member_is_shown_and_the_rest_is_still_read(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "alpha", {"a.so": b"\x7fELF\2\1" + os.urandom(4000), "b.hsaco": bundle_of("gfx906")})
    unread: list[RocwheelError] = []
    report = make_report([wheel], unread=unread)
    problems = {file.path: file.problem for file in report.files if file.problem}
    assert list(problems) == ["a.so"]
    assert [str(error).startswith(f"{wheel}!a.so: ") for error in unread] == [True]
    assert (report.totals.unreadable, report.totals.targets) == (1, ("gfx906",))


@pytest.mark.parametrize("folder", ["dist", "wow!/dist"])
def test_an_invalid_wheel_counts_with_its_size(tmp_path: Path, folder: str) -> None:
    dist = tmp_path / folder
    dist.mkdir(parents=True)
    make_wheel(dist, "alpha", {})
    (dist / "beta-1.0-py3-none-any.whl").write_bytes(b"no wheel")
    unread: list[RocwheelError] = []
    report = make_report([dist], unread=unread)
    assert [(one.label, one.kind, one.rest) for one in report.packages if one.problem] == [
        ("beta-1.0-py3-none-any.whl", Kind.UNREADABLE, 8)
    ]
    assert report.totals.packed == sum(path.stat().st_size for path in dist.iterdir())
    assert len(unread) == 1


def test_wheels_with_the_same_name_are_distinguished_by_file_name(tmp_path: Path) -> None:
    for tag in ("py3-none-linux_x86_64", "py3-none-linux_aarch64"):
        make_wheel(tmp_path, "alpha", {}, tag=tag)
    assert [one.label for one in report_on(tmp_path).packages] == [
        "alpha-1.0-py3-none-linux_aarch64.whl",
        "alpha-1.0-py3-none-linux_x86_64.whl",
    ]


def test_a_path_given_twice_counts_once(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "alpha", {})
    (tmp_path / "link").symlink_to(tmp_path)
    assert report_on(wheel, tmp_path / "link" / wheel.name).totals.packages == 1


def test_an_older_report_in_the_folder_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"123")
    (tmp_path / "report.html").write_bytes(b"page")
    assert report_on(tmp_path, left_out=tmp_path / "report.html").totals.size == 3


def test_every_path_without_content_is_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProblemsError, match="2 problems"):
        make_report([tmp_path / "empty", tmp_path / "absent"], unread=[])


def test_savings_are_relative_to_the_sizes_of_the_wheels(tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path, name, {"k.hsaco": bundle_of("gfx906", "gfx942")}) for name in ("alpha", "beta")]
    report = report_on(*wheels)
    assert report.savings is not None
    whole = sum(wheel.stat().st_size for wheel in wheels)
    assert {(row.size, row.packed) for row in report.savings.rows} == {(report.totals.size, whole)}


def test_an_unreadable_path_is_shown_beside_the_others(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    wheel = make_wheel(tmp_path / "dist", "alpha", {"a": b"1"})
    unread: list[RocwheelError] = []
    report = make_report([tmp_path / "empty", wheel, tmp_path / "absent"], unread=unread)
    shown = [(one.label, one.kind, one.problem.partition("; ")[0].partition(". ")[0]) for one in report.packages]
    assert shown == [
        ("empty", Kind.UNREADABLE, f"{tmp_path}/empty: is an empty folder"),
        ("alpha", Kind.WHEEL, ""),
        ("absent", Kind.UNREADABLE, f"{tmp_path}/absent: can't be read (No such file or directory)"),
    ]
    assert (len(unread), report.totals.unreadable) == (2, 2)


def test_an_unreadable_older_state_is_shown(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "alpha", {"a": b"1"})
    unread: list[RocwheelError] = []
    report = make_report([wheel], unread=unread, against=tmp_path / "absent")
    assert report.against is not None
    assert report.against.problem.startswith(f"{tmp_path}/absent: can't be read (No such file or directory)")
    assert (report.against.packages, report.totals.packages, len(unread)) == ((), 1, 1)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is an empty folder"):
        make_report([tmp_path], unread=[])


def test_files_in_an_environment_that_belong_to_no_package_are_counted(tmp_path: Path) -> None:
    site = tmp_path / "lib/python3.11/site-packages"
    (site / "alpha-1.0.dist-info").mkdir(parents=True)
    (site / "alpha-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.4\nName: alpha\nVersion: 1.0\n")
    (site / "alpha-1.0.dist-info/RECORD").write_text(
        "alpha.py,,\nalpha-1.0.dist-info/METADATA,,\nalpha-1.0.dist-info/RECORD,,\n"
    )
    (site / "alpha.py").write_bytes(b"123")
    (site / "stray").write_bytes(b"1")
    report = report_on(tmp_path)
    assert [(one.label, one.kind, one.files) for one in report.packages] == [
        ("alpha", Kind.INSTALLED, 3),
        ("site-packages", Kind.FILES, 1),
    ]
    assert report.totals.size == size_on_disk(site)


def duplicates_in(*paths: Path) -> list[Copies]:
    """Return the duplicates but for metadata."""
    found = make_report(paths, unread=[]).duplicates
    return [copies for copies in found if "dist-info" not in copies.files[0].path]


def test_files_with_the_same_content_in_two_wheels_are_found(tmp_path: Path) -> None:
    data = os.urandom(500)
    make_wheel(tmp_path, "alpha", {"a/x": data, "a/again": data, "a/other": b"1" * 500})
    make_wheel(tmp_path, "beta", {"b/x": data, "b/short": b"1"})
    assert duplicates_in(tmp_path) == [Copies(500, 500, (Copy(0, "a/again"), Copy(0, "a/x"), Copy(1, "b/x")))]


def test_one_copy_per_package_is_counted(tmp_path: Path) -> None:
    for name in ("alpha", "beta", "gamma"):
        make_wheel(tmp_path, name, {f"{name}/{number}": b"12345" for number in range(10)})
    (copies,) = duplicates_in(tmp_path)
    assert (copies.size, copies.wasted, len(copies.files)) == (5, 10, 30)


def test_copies_within_one_package_do_not_count(tmp_path: Path) -> None:
    make_wheel(tmp_path, "alpha", {"a": b"123", "b": b"123"})
    assert duplicates_in(tmp_path) == []


def test_files_on_disk_are_compared_with_wheel_members(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "alpha", {"a": b"12345"})
    artifact(tmp_path / "in", "base_lib_generic", {"x": b"12345", "y": b"54321"})
    assert duplicates_in(wheel, tmp_path / "in") == [Copies(5, 5, (Copy(0, "a"), Copy(1, "x")))]


def test_empty_files_do_not_count(tmp_path: Path) -> None:
    make_wheel(tmp_path, "alpha", {"a": b""})
    make_wheel(tmp_path, "beta", {"b": b""})
    assert duplicates_in(tmp_path) == []


PACKAGES = tuple(PackageFacts(label=name, kind=Kind.WHEEL, source=name) for name in ("host", "device-a", "device-b"))


def file_for(path: str, *targets: str, package: int = 0) -> FileFacts:
    """Return a file with code for some targets."""
    parts = tuple(Part(target, 1) for target in ("", *targets))
    return FileFacts(package=package, component="lib", path=path, size=len(parts), parts=parts)


@pytest.mark.parametrize(
    ("codes", "gpu", "expected"),
    [
        (["gfx906"], "gfx906", Code.EXACT),
        (["gfx90a:xnack+"], "gfx90a", Code.PARTLY),
        (["gfx90a:xnack+", "gfx90a:xnack-"], "gfx90a", Code.EXACT),
        (["gfx11-generic"], "gfx1100", Code.GENERIC),
        (["gfx11-generic", "gfx1100"], "gfx1100", Code.EXACT),
        (["amdgcnspirv"], "gfx1100", Code.SPIRV),
        (["gfx906"], "gfx908", Code.MISSING),
        ([], "gfx908", Code.MISSING),
    ],
)
def test_the_best_matching_code_counts(codes: list[str], gpu: str, expected: Code) -> None:
    assert code_for([parse_target_id(code) for code in codes], TargetId(gpu)) is expected


def test_libraries_that_lack_code_for_a_gpu_are_shown() -> None:
    matrix = make_matrix(PACKAGES, [file_for("lib/a.so", "gfx1100", "gfx906"), file_for("lib/b.so", "gfx906")])
    assert matrix.gpus == ("gfx906", "gfx1100")
    assert matrix.rows == (
        MatrixRow("lib/a.so", ("host",), ("gfx906", "gfx1100"), (Code.EXACT, Code.EXACT)),
        MatrixRow("lib/b.so", ("host",), ("gfx906",), (Code.EXACT, Code.MISSING)),
    )


def test_kernel_files_in_several_packages_form_one_library() -> None:
    files = [
        file_for("lib/rocblas/library/T_gfx906.dat", "gfx906", package=1),
        file_for("lib/rocblas/library/K_gfx942.hsaco", "gfx942", package=2),
        file_for(".kpack/blas_gfx906.kpack", "gfx906", package=1),
        file_for(".kpack/blas_gfx942.kpack", "gfx942", package=2),
    ]
    rows = make_matrix(PACKAGES, files).rows
    assert [(row.library, row.packages) for row in rows] == [
        (".kpack/blas_*.kpack", ("device-a", "device-b")),
        ("lib/rocblas/library/", ("device-a", "device-b")),
    ]
    assert {code for row in rows for code in row.codes} == {Code.EXACT}


def test_libraries_in_several_packages_at_the_same_path_stay_separate() -> None:
    files = [file_for("lib/a.so", "gfx906", package=1), file_for("lib/a.so", "gfx942", package=2)]
    rows = make_matrix(PACKAGES, files).rows
    assert [(row.library, row.packages, row.targets) for row in rows] == [
        ("lib/a.so", ("device-a",), ("gfx906",)),
        ("lib/a.so", ("device-b",), ("gfx942",)),
    ]


def test_generic_code_counts_for_all_its_gpus() -> None:
    matrix = make_matrix(PACKAGES, [file_for("a.so", "gfx9-4-generic")])
    assert {"gfx940", "gfx941", "gfx942"} & set(matrix.gpus)
    assert "gfx9-4-generic" not in matrix.gpus
    assert set(matrix.rows[0].codes) == {Code.GENERIC}


def test_a_target_that_is_not_from_amd_gets_no_column() -> None:
    matrix = make_matrix(PACKAGES, [file_for("a.so", "sm_90")])
    assert (matrix.gpus, [row.targets for row in matrix.rows]) == ((), [("sm_90",)])


def test_files_without_device_code_are_not_libraries() -> None:
    assert make_matrix(PACKAGES, [FileFacts(package=0, component="lib", path="a.so", size=3)]).rows == ()


def test_lost_code_counts_as_missing() -> None:
    files = [file_for("lib/librocblas.so.5", "gfx906", "gfx1030"), file_for("lib/b.so", "gfx906", "gfx1030")]
    matrix = make_matrix(PACKAGES, files, [LostCode("lib/librocblas.so.5", "", ("gfx906",))])
    assert matrix.gpus == ("gfx906", "gfx1030")
    assert [row.codes for row in matrix.rows] == [(Code.EXACT, Code.EXACT), (Code.MISSING, Code.EXACT)]


@needs_compiler
def test_libraries_are_found_across_packages_and_missing_libraries_are_reported(tmp_path: Path) -> None:
    tree = build_tree(
        tmp_path / "tree",
        Lib("lib/libone.so.1", ("libtwo.so.1", "libc.so.6", "libabsent.so.1"), "$ORIGIN/../../b/lib"),
        Lib("lib/libtwo.so.1"),
    )
    make_wheel(tmp_path / "dist", "alpha", {"a/lib/libone.so.1": tree / "lib/libone.so.1"}, requires=("beta",))
    make_wheel(tmp_path / "dist", "beta", {"b/lib/libtwo.so.1": tree / "lib/libtwo.so.1"})
    graph = make_report([tmp_path / "dist"], unread=[]).graph
    assert graph.files == (
        Loading(
            "a/lib/libone.so.1",
            "alpha",
            True,
            (
                Load("libtwo.so.1", "b/lib/libtwo.so.1", "beta"),
                Load("libc.so.6"),
                Load("libabsent.so.1", is_missing=True),
            ),
        ),
        Loading("b/lib/libtwo.so.1", "beta", True, ()),
    )
    found = [(one.rule, one.package, one.path) for one in graph.findings if one.severity == "error"]
    assert ("unresolved-library", "alpha", "a/lib/libone.so.1") in found


@needs_compiler
def test_a_program_has_the_same_path_as_in_its_package(tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("bin/tool", ("libabsent.so.1",)))
    make_wheel(tmp_path / "dist", "demo", {"demo-1.0.data/scripts/tool": tree / "bin/tool"})
    report = make_report([tmp_path / "dist"], unread=[])
    name = "demo-1.0.data/scripts/tool"
    assert [one.path for one in report.graph.files] == [name]
    assert {one.path for one in report.graph.findings} == {"", name}
    assert name in {file.path for file in report.files}


def test_windows_dlls_are_resolved_like_the_windows_loader(tmp_path: Path) -> None:
    imports = ("B.dll", "KERNEL32.dll", "absent.dll", "rocblas.dll", "OpenCL.dll")
    files = {
        "_rocm_sdk_core/bin/a.dll": pe_file("a.dll", *imports),
        "_rocm_sdk_core/bin/b.dll": pe_file("b.dll"),
        "_rocm_sdk_core/bin/tool.exe": pe_file("tool.exe", "b.dll", is_dll=False),
    }
    make_wheel(tmp_path / "dist", "rocm-sdk-core", files, tag="py3-none-win_amd64")
    graph = make_report([tmp_path / "dist"], unread=[]).graph
    b = "_rocm_sdk_core/bin/b.dll"
    assert graph.files == (
        Loading(
            "_rocm_sdk_core/bin/a.dll",
            "rocm-sdk-core",
            True,
            (
                Load("B.dll", b, "rocm-sdk-core"),
                Load("KERNEL32.dll"),
                Load("absent.dll", is_missing=True),
                Load("rocblas.dll", "_rocm_sdk_libraries/bin/rocblas.dll", "rocm-sdk-libraries"),
                Load("OpenCL.dll"),
            ),
        ),
        Loading(b, "rocm-sdk-core", True, ()),
        Loading("_rocm_sdk_core/bin/tool.exe", "rocm-sdk-core", False, (Load("b.dll", b, "rocm-sdk-core"),)),
    )


def test_no_paths_give_an_empty_graph() -> None:
    assert read_graph([]) == Graph()


def test_a_folder_without_packages_has_an_empty_graph_without_a_problem(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    assert make_report([tmp_path], unread=[]).graph == Graph()


def test_an_unreadable_path_is_the_problem_of_the_graph(tmp_path: Path) -> None:
    assert "doesn't exist" in read_graph([tmp_path / "absent"]).problem
