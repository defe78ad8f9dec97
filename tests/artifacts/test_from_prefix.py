"""Tests of `rocwheel.artifacts.from_prefix`."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.artifacts.from_prefix import Sign, import_prefixes, library_signs, stated_signs
from rocwheel.artifacts.import_table import load_import_table
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.core.progress import Silent
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.targets.kernel_files import kernel_targets
from tests.support.core_prefix import make_core_prefix, make_rocm_folder
from tests.support.damage import unless_refused
from tests.support.example_counts import examples
from tests.support.fat_libraries import build_fat_library, lay_over, make_bundle

ROCM = load_import_table("prefix.toml")
HEADER = "#define ROCM_VERSION_MAJOR   6\n#define ROCM_VERSION_MINOR   4\n#define ROCM_VERSION_PATCH   1\n"


def make_prefix(root: Path, **files: str) -> Path:
    for name, text in {"lib/libamdhip64.so.6.4.60401": "", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def version_of(root: Path) -> str:
    return import_prefixes([root], root.parent / "artifacts", ROCM).version


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".info/version", "6.4.1-83\n"),
        (".info/version-utils", "6.4.1\n"),
        ("include/rocm-core/rocm_version.h", HEADER),
        ("include/rocm_version.h", HEADER),
        ("share/therock/therock_manifest.json", '{"rocm_version": "6.4.1"}'),
    ],
)
def test_the_release_is_read_from_a_version_file(tmp_path: Path, name: str, text: str) -> None:
    assert version_of(make_prefix(tmp_path / "rocm", **{name: text})) == "6.4.1"


def test_a_header_that_only_includes_another_states_no_version(tmp_path: Path) -> None:
    root = make_prefix(tmp_path, **{"include/rocm_version.h": "#include <rocm-core/rocm_version.h>\n"})
    assert stated_signs(root, ["include/rocm_version.h"]) == []


@pytest.mark.parametrize(("data", "found"), [(b"unknown\n", "'unknown'"), (b"\xff\xfe6.4", "'\ufffd\ufffd6.4'")])
def test_a_version_file_without_a_version_is_refused(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / ".info/version"
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(InputError) as error:
        stated_signs(tmp_path, [".info/version"])
    assert str(error.value) == (
        f"{path}: contains the version {found}; expected a version such as 6.4.0. "
        "Correct the file, or remove it and set the version with 'rocwheel build --version'."
    )


def test_without_a_version_file_the_library_names_give_the_release(tmp_path: Path) -> None:
    assert version_of(make_prefix(tmp_path / "rocm")) == "6.4.1"


def test_libraries_with_different_patch_numbers_leave_the_release_unknown(tmp_path: Path) -> None:
    assert version_of(make_prefix(tmp_path / "rocm", **{"lib/librccl.so.1.0.60400": ""})) == ""


@pytest.mark.parametrize(
    ("path", "signs"),
    [
        ("lib/librccl.so.1.0.60002", [Sign("lib/librccl.so.1.0.60002", "6.0.2", "librccl")]),
        ("lib64/libhipblas.so.3.1.100000", [Sign("lib64/libhipblas.so.3.1.100000", "10.0.0", "libhipblas")]),
        ("lib/libhiprtc.so.6.1.40093", []),
        ("lib/libamdhip64.so.6.1.40093-20b74aa10", []),
        ("lib/libabsl.so.20210324", []),
        ("lib/librccl.so.1", []),
        ("lib/librccl.so.1.0.060400", []),
        ("lib/librccl.so.1.0.06040", []),
        ("lib/rocm_sysdeps/lib/librt.so.0.10101", []),
    ],
)
def test_a_library_suffix_is_a_release_only_if_the_number_is_plausible(path: str, signs: list[Sign]) -> None:
    assert library_signs([path]) == signs


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (
            {".info/version": "6.3.0-39\n", "lib/librccl.so.1.0.60400": ""},
            "6.3.0: .info/version; 6.4.0: lib/librccl.so.1.0.60400; 6.4.1: lib/libamdhip64.so.6.4.60401",
        ),
        (
            {".info/version": "6.4.1-83\n", "lib/libhipfft.so.0.1.70000": ""},
            "6.4.1: .info/version, lib/libamdhip64.so.6.4.60401; 7.0.0: lib/libhipfft.so.0.1.70000",
        ),
        (
            {".info/version": "6.4.1-83\n", "lib/libamdhip64.so.6.4.60400": ""},
            "6.4.0: lib/libamdhip64.so.6.4.60400; 6.4.1: .info/version, lib/libamdhip64.so.6.4.60401",
        ),
        (
            {".info/version": "6.4.1-83\n", "include/rocm-core/rocm_version.h": HEADER.replace("6", "7")},
            "6.4.1: .info/version, lib/libamdhip64.so.6.4.60401; 7.4.1: include/rocm-core/rocm_version.h",
        ),
    ],
    ids=["stated and named", "libraries", "one library twice", "two files that state it"],
)
def test_a_prefix_with_files_from_two_releases_is_refused(tmp_path: Path, files: dict[str, str], found: str) -> None:
    root = make_prefix(tmp_path / "rocm", **files)
    with pytest.raises(InputError) as error:
        import_prefixes([root], tmp_path / "artifacts", ROCM)
    assert str(error.value) == (
        f"{root}: contains files from several ROCm releases ({found}); expected files from one release. "
        "Remove the leftovers of the other releases, or install one release into its own folder."
    )
    assert not (tmp_path / "artifacts").exists()


def test_two_sonames_of_one_library_in_one_release_are_accepted(tmp_path: Path) -> None:
    twice = {"lib/librocprofiler64.so.1.0.60401": "", "lib/librocprofiler64.so.2.0.60401": ""}
    assert version_of(make_prefix(tmp_path / "rocm", **twice)) == "6.4.1"


def test_progress_shows_the_scan_of_a_prefix_before_any_copy(tmp_path: Path) -> None:
    begun: list[str] = []

    class Steps(Silent):
        def begin(self, label: str, total: int) -> None:  # noqa: ARG002
            begun.append(label)

    root = make_prefix(tmp_path / "rocm")
    import_prefixes([root], tmp_path / "artifacts", ROCM, progress=Steps())
    assert begun[:3] == [f"scanning {root}", f"looking for archives in {root}", f"copying {root}"]


def test_a_pipe_as_version_file_is_refused_without_blocking(tmp_path: Path) -> None:
    root = make_prefix(tmp_path / "rocm")
    (root / ".info").mkdir()
    os.mkfifo(root / ".info/version")
    with pytest.raises(InputError, match=r"\.info/version: .*isn't a regular file"):
        import_prefixes([root], tmp_path / "artifacts", ROCM)


@pytest.mark.parametrize(
    "name", ["lib/python3/x.py", "bin/ls", "share/man/man1/ls.1", "lib/llvm/bin/clang", "bin/clinfo"]
)
def test_a_folder_of_other_software_is_refused_before_any_copy(tmp_path: Path, name: str) -> None:
    root = tmp_path / "usr"
    (root / name).parent.mkdir(parents=True)
    (root / name).write_text("")
    with pytest.raises(InputError) as error:
        import_prefixes([root], tmp_path / "artifacts", ROCM)
    assert str(error.value) == (
        f"{root}: has no file that is specific to ROCm (1 file checked). Check the path, or the --table option."
    )


def test_the_parent_folder_of_prefixes_is_refused_with_the_prefixes_inside(tmp_path: Path) -> None:
    for name in ("rocm-6.4.1", "rocm-7.0.0"):
        make_prefix(tmp_path / "opt" / name)
    with pytest.raises(InputError) as error:
        import_prefixes([tmp_path / "opt"], tmp_path / "artifacts", ROCM)
    assert str(error.value) == (
        f"{tmp_path}/opt: has no file that is specific to ROCm (2 files checked). "
        f"Specify the prefix itself: {tmp_path}/opt/rocm-6.4.1, {tmp_path}/opt/rocm-7.0.0."
    )


NUMBERS = st.sampled_from(["7", "14", "0", "99999999999999999999", "-1", ""])
STATED = st.one_of(
    st.binary(max_size=60),
    st.tuples(NUMBERS, NUMBERS, NUMBERS).map(lambda parts: ".".join(parts).encode()),
    st.lists(st.tuples(st.sampled_from(["MAJOR", "MINOR", "PATCH"]), NUMBERS), max_size=4).map(
        lambda rows: "".join(f"#define ROCM_VERSION_{name} {number}\n" for name, number in rows).encode()
    ),
    st.sampled_from([b'{"rocm_version": "7.14.0"}', b'{"rocm_version": 7}', b"[" * 100_000, b"\xff\xfe7", b"7.0.0-66"]),
)
PLACES = [".info/version", "include/rocm-core/rocm_version.h", "share/therock/therock_manifest.json"]


@given(st.dictionaries(st.sampled_from(PLACES), STATED, min_size=1))
@settings(max_examples=examples(100))
def test_any_version_file_gives_a_version_or_an_error_that_names_the_prefix(stated: dict[str, bytes]) -> None:
    with TemporaryDirectory() as folder:
        root, dest = Path(folder, "rocm"), Path(folder, "artifacts")
        for name, data in {"lib/libamdhip64.so.7": b"library", **stated}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        report = unless_refused(lambda: import_prefixes([root], dest, ROCM), str(root))
        assert dest.exists() == dest.is_dir() == (report is not None)


@given(
    st.lists(
        st.sampled_from(["lib/", "lib64/", "lib", "amdhip64", ".so", ".", "6", "60400", "71400", "/", "é"]), max_size=9
    )
)
def test_any_library_name_gives_a_release_or_nothing(parts: list[str]) -> None:
    for sign in library_signs(["".join(parts)]):
        assert re.fullmatch(r"1?[0-9]\.1?[0-9]\.1?[0-9]", sign.release)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rocm_version.h", HEADER.replace("   4", f" {'9' * 5000}")),
        ("therock_manifest.json", '{"rocm_version": "of today"}'),
    ],
)
def test_an_invalid_version_is_refused_in_each_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=re.escape(name)):
        stated_signs(tmp_path, [name])


def test_a_number_on_the_line_after_a_definition_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "rocm_version.h").write_text(HEADER.replace("   4", "\n4"))
    assert stated_signs(tmp_path, ["rocm_version.h"]) == []


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    root = tmp_path / "rocm"
    files = {
        ".info/version": b"6.2.0-66\n",
        "bin/rocminfo": b"program",
        "lib/libamdhip64.so.6.2": b"library",
        "lib/llvm/bin/clang": b"compiler",
        "share/new/thing": b"?",
    }
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "bin/rocminfo").chmod(0o555)
    (root / "lib/libamdhip64.so.6").symlink_to("libamdhip64.so.6.2")
    (root / "lib/libamdhip64.so").symlink_to(root / "lib/libamdhip64.so.6")
    (root / "llvm").symlink_to("lib/llvm")
    return root


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


def text_of(error: pytest.ExceptionInfo[RocwheelError]) -> str:
    return str(error.value)


def test_a_prefix_becomes_artifacts_with_the_names_of_therock(prefix: Path, dest: Path) -> None:
    report = import_prefixes([prefix], dest, ROCM)

    with open_catalog(dest) as catalog:
        entries = {
            entry.path: (str(entry.artifact), entry.link)
            for entry in catalog.entries
            if (entry.mode and entry.source) or entry.link
        }
    assert entries == {
        ".info/version": ("base_run_generic", None),
        "bin/rocminfo": ("core-runtime_run_generic", None),
        "lib/libamdhip64.so": ("core-hip_lib_generic", "libamdhip64.so.6"),
        "lib/libamdhip64.so.6": ("core-hip_lib_generic", "libamdhip64.so.6.2"),
        "lib/libamdhip64.so.6.2": ("core-hip_lib_generic", None),
        "lib/llvm/bin/clang": ("amd-llvm_run_generic", None),
        "llvm": ("amd-llvm_run_generic", "lib/llvm"),
        "share/new/thing": ("unsorted_run_generic", None),
        "share/therock/dist_info.json": ("base_lib_generic", None),
        "share/therock/therock_manifest.json": ("base_lib_generic", None),
    }
    assert (report.version, report.unmatched) == ("6.2.0", ("share/new/thing",))
    assert prefix.joinpath("bin/rocminfo").stat().st_mode & 0o777 == 0o555
    copy = dest / "core-runtime_run_generic/core-runtime/stage/bin/rocminfo"
    assert oct(copy.stat().st_mode & 0o777) == "0o755", "a copy can be replaced and removed"


def test_strict_mode_refuses_files_that_match_no_rule(prefix: Path, dest: Path) -> None:
    with pytest.raises(ProblemsError) as error:
        import_prefixes([prefix], dest, ROCM, strict=True)

    assert text_of(error) == (
        f"the import: 1 problem\n  share/new/thing in {prefix}: does not match any rule in the table. "
        "Add a rule for the file, or exclude the file with [[skip]]."
    )
    assert not dest.exists()


def test_the_manifest_of_a_prefix_is_kept(prefix: Path, dest: Path) -> None:
    manifest = {"rocm_version": "6.2.0", "flags": {"KPACK_SPLIT_ARTIFACTS": True}}
    (prefix / "share/therock").mkdir()
    (prefix / "share/therock/therock_manifest.json").write_text(json.dumps(manifest))

    import_prefixes([prefix], dest, ROCM)

    place = dest / "base_lib_generic/base/aux-overlay/stage/share/therock/therock_manifest.json"
    assert json.loads(place.read_text()) == manifest
    with open_catalog(dest) as catalog:
        assert catalog.manifest is not None
        assert catalog.manifest.kpack_split


def test_a_symlink_out_of_the_prefix_is_refused(prefix: Path, dest: Path) -> None:
    (prefix / "bin/clinfo").symlink_to("../../usr/bin/clinfo")

    with pytest.raises(ProblemsError) as error:
        import_prefixes([prefix], dest, ROCM)

    assert text_of(error) == (
        f"the import: 1 problem\n  bin/clinfo in {prefix}: is a symlink that points out of the tree through "
        "'../../usr/bin/clinfo'; expected a link to a path in the same source"
    )


def test_an_absolute_symlink_out_of_the_prefix_is_dropped_and_reported(prefix: Path, dest: Path) -> None:
    (prefix / "bin/clinfo").symlink_to("/usr/bin/clinfo")

    assert import_prefixes([prefix], dest, ROCM).dangling == ("bin/clinfo",)


def test_an_absolute_symlink_out_of_the_prefix_is_not_resolved_inside_it(prefix: Path, dest: Path) -> None:
    (prefix / "etc").mkdir()
    (prefix / "etc/passwd").write_text("of the prefix")
    (prefix / "share/users").symlink_to("/etc/passwd")
    (prefix / "share/etc").symlink_to("/etc")
    (prefix / "share/more").symlink_to("etc/passwd")
    assert import_prefixes([prefix], dest, ROCM).dangling == ("share/etc", "share/more", "share/users")


@pytest.mark.parametrize("given", ["rocm-6.2.0", "rocm"], ids=["real name", "other name"])
@pytest.mark.parametrize("written", ["rocm-6.2.0", "rocm"], ids=["links to real name", "links to other name"])
def test_an_absolute_symlink_into_the_prefix_works_with_any_prefix_name(
    prefix: Path, tmp_path: Path, dest: Path, given: str, written: str
) -> None:
    prefix.rename(tmp_path / "rocm-6.2.0")
    (tmp_path / "rocm").symlink_to("rocm-6.2.0")
    link = tmp_path / "rocm-6.2.0/lib/libamdhip64.so"
    link.unlink()
    link.symlink_to(tmp_path / written / "lib/libamdhip64.so.6")
    import_prefixes([tmp_path / given], dest, ROCM)
    with open_catalog(dest) as catalog:
        links = {entry.path: entry.link for entry in catalog.entries if entry.path == "lib/libamdhip64.so"}
    assert links == {"lib/libamdhip64.so": "libamdhip64.so.6"}


def test_a_relative_symlink_that_repeats_the_prefix_path_is_followed(prefix: Path, dest: Path) -> None:
    inner = prefix / "share/inner" / prefix.relative_to("/")
    inner.mkdir(parents=True)
    (inner / "note").write_text("right")
    (prefix / "share/inner/note").write_text("wrong")
    (prefix / "share/link").symlink_to(f"inner{prefix}/note")
    import_prefixes([prefix], dest, ROCM)
    (link,) = (path for path in dest.rglob("link") if path.is_symlink())
    assert link.read_text() == "right"


def test_a_pipe_is_refused(prefix: Path, dest: Path) -> None:
    os.mkfifo(prefix / "bin/pipe")

    with pytest.raises(InputError) as error:
        import_prefixes([prefix], dest, ROCM)

    assert text_of(error) == f"{prefix}/bin/pipe: is a device node, socket, or pipe; expected files, links, and folders"


def test_pipes_are_refused_together(prefix: Path, dest: Path) -> None:
    os.mkfifo(prefix / "bin/one")
    os.mkfifo(prefix / "lib/two")

    with pytest.raises(ProblemsError) as error:
        import_prefixes([prefix], dest, ROCM)

    pipe = "is a device node, socket, or pipe; expected files, links, and folders"
    assert text_of(error) == f"{prefix}: 2 problems\n  {prefix}/bin/one: {pipe}\n  {prefix}/lib/two: {pipe}"
    assert not dest.exists()


def test_missing_prefixes_are_refused_together(prefix: Path, tmp_path: Path, dest: Path) -> None:
    with pytest.raises(ProblemsError) as error:
        import_prefixes([tmp_path / "one", prefix, tmp_path / "two"], dest, ROCM)

    found = "is not a folder; expected an install prefix such as /opt/rocm"
    assert text_of(error) == f"the prefixes: 2 problems\n  {tmp_path}/one: {found}\n  {tmp_path}/two: {found}"


def test_symlink_loops_are_refused_together(prefix: Path, dest: Path) -> None:
    (prefix / "lib/one").symlink_to("two")
    (prefix / "lib/two").symlink_to("one")
    (prefix / "lib/three").symlink_to(prefix / "lib/three/further")

    with pytest.raises(ProblemsError) as error:
        import_prefixes([prefix], dest, ROCM)

    found = f"in {prefix}: is a symlink that loops. Fix the symlink in the source."
    assert text_of(error).splitlines()[1:] == [f"  lib/{name} {found}" for name in ("one", "three", "two")]


@pytest.mark.parametrize("given", ["prefix", "dest"])
def test_a_symlink_to_itself_is_refused_as_a_folder(given: str, prefix: Path, dest: Path) -> None:
    (circle := dest.parent / "circle").symlink_to("circle")
    folders = {"prefix": ([circle], dest), "dest": ([prefix], circle)}[given]
    with pytest.raises(InputError, match=f"^{circle}: (is not a folder|already exists); expected "):
        import_prefixes(*folders, ROCM)


def test_names_that_are_not_utf8_are_refused_together(prefix: Path, dest: Path) -> None:
    for name in (b"lib/one\xff", b"lib/two\xff"):
        (prefix / os.fsdecode(name)).touch()

    with pytest.raises(ProblemsError) as error:
        import_prefixes([prefix], dest, ROCM)

    assert text_of(error) == (
        "the import: 2 problems\n"
        f"  'lib/one\\udcff' in {prefix}: its path is not valid UTF-8 text. Rename the file.\n"
        f"  'lib/two\\udcff' in {prefix}: its path is not valid UTF-8 text. Rename the file."
    )
    assert not dest.exists()


def test_a_missing_prefix_is_refused(tmp_path: Path, dest: Path) -> None:
    with pytest.raises(InputError) as error:
        import_prefixes([tmp_path / "absent"], dest, ROCM)

    assert text_of(error) == f"{tmp_path}/absent: is not a folder; expected an install prefix such as /opt/rocm"


def test_an_output_folder_inside_the_prefix_is_refused(prefix: Path) -> None:
    with pytest.raises(InputError) as error:
        import_prefixes([prefix], prefix / "artifacts", ROCM)

    assert text_of(error) == f"{prefix}/artifacts: is inside the prefix {prefix}. Choose a folder outside the prefix."


@pytest.mark.parametrize("name", ["bin", "bin/rocminfo"])
def test_unreadable_files_and_folders_are_refused(prefix: Path, dest: Path, name: str) -> None:
    (prefix / name).chmod(0)
    if os.access(prefix / name, os.R_OK):
        pytest.skip("this user may read everything")

    with pytest.raises(
        InputError, match=r"can't be read \(Permission denied\)\. Check whether it exists and is readable\."
    ):
        import_prefixes([prefix], dest, ROCM)

    (prefix / name).chmod(0o755)


def test_a_folder_without_rocm_is_reported_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("x")
    with pytest.raises(InputError) as error:
        import_prefixes([tmp_path / "notes"], tmp_path / "dest", load_import_table("prefix.toml"))
    found = "has no file that is specific to ROCm (1 file checked). Check the path, or the --table option."
    assert str(error.value) == f"{tmp_path}/notes: {found}"
    assert not (tmp_path / "dest").exists()


@pytest.mark.parametrize("name", ["core", "core-10", "core-10.0", "../rocm-10.0.0"])
def test_a_release_next_to_others_can_be_imported_by_each_of_its_names(name: str, tmp_path: Path, dest: Path) -> None:
    rocm = make_rocm_folder(tmp_path, "7.14.0", "10.0.0")
    report = import_prefixes([rocm / name], dest, ROCM)
    assert (report.version, report.dangling) == ("10.0.0", ())
    assert report.unmatched == (".build-id/f1/4cd6020332e3027332fc4e1e049dd6ac8f959b.debug",)


def test_the_parent_folder_of_releases_is_refused_with_their_names(tmp_path: Path, dest: Path) -> None:
    rocm = make_rocm_folder(tmp_path, "7.14.0", "10.0.0")
    with pytest.raises(InputError) as error:
        import_prefixes([rocm], dest, ROCM)
    assert text_of(error) == (
        f"{rocm}: is not a prefix, but contains several prefixes: core-10.0, core-7.14. "
        f"Specify {rocm}/core-10.0 or {rocm}/core-7.14."
    )
    assert not dest.exists()


def test_prefixes_of_two_releases_are_not_merged(tmp_path: Path, dest: Path) -> None:
    folders = [make_core_prefix(tmp_path, release) for release in ("7.14.0", "10.0.0")]
    with pytest.raises(InputError) as error:
        import_prefixes(folders, dest, ROCM)
    assert text_of(error) == (
        f"{folders[1]}: is from ROCm 10.0.0, but {folders[0]} is from 7.14.0. Import each release separately."
    )
    assert not dest.exists()


def test_prefixes_with_different_files_at_one_path_are_not_merged(prefix: Path, tmp_path: Path, dest: Path) -> None:
    other = tmp_path / "extras"
    (other / "bin").mkdir(parents=True)
    (other / "bin/rocminfo").write_bytes(b"another")
    with pytest.raises(ProblemsError) as error:
        import_prefixes([prefix, other], dest, ROCM)
    assert text_of(error) == (
        f"the import: 1 problem\n  bin/rocminfo in {other}: goes to 'bin/rocminfo', but bin/rocminfo in {prefix} has "
        "different content for that path. Exclude one of the files."
    )
    assert not dest.exists()


def test_prefixes_with_different_links_at_one_path_are_not_merged(prefix: Path, tmp_path: Path, dest: Path) -> None:
    other = tmp_path / "extras"
    (other / "lib").mkdir(parents=True)
    (other / "lib/libamdhip64.so.6.9").write_bytes(b"library")
    (other / "lib/libamdhip64.so.6").symlink_to("libamdhip64.so.6.9")
    with pytest.raises(
        ProblemsError, match=r"lib/libamdhip64\.so\.6 in .*/extras: is a symlink to 'libamdhip64\.so\.6\.9'"
    ):
        import_prefixes([prefix, other], dest, ROCM)
    assert not dest.exists()


def test_a_link_through_another_prefix_folder_name_stays_inside_the_prefix(tmp_path: Path, dest: Path) -> None:
    rocm = make_rocm_folder(tmp_path, "7.14.0")
    (rocm / "core-7.14/share/hip/library").symlink_to(rocm / "lib/libamdhip64.so.7")
    assert import_prefixes([rocm / "core"], dest, ROCM).dangling == ()
    with open_catalog(dest) as catalog:
        links = {entry.path: entry.link for entry in catalog.entries if entry.link}
    assert (links["share/hip/include"], links["share/hip/library"]) == (
        "../../include/hip",
        "../../lib/libamdhip64.so.7",
    )


def test_device_code_archives_go_to_the_artifacts_they_are_named_after(tmp_path: Path, dest: Path) -> None:
    root = make_core_prefix(tmp_path, "7.14.0")
    (root / ".kpack/notes.kpack").write_bytes(b"?")
    (root / "share/therock/therock_manifest.json").unlink()
    report = import_prefixes([root], dest, ROCM)
    with open_catalog(dest) as catalog:
        places = {entry.path: str(entry.artifact) for entry in catalog.entries if entry.path.startswith(".kpack/")}
        assert catalog.manifest is not None
        assert catalog.manifest.kpack_split
    assert places == {
        ".kpack/blas_lib_gfx1030.kpack": "blas_lib_gfx1030",
        ".kpack/blas_lib_gfx906.kpack": "blas_lib_gfx906",
        ".kpack/blas_lib_gfx90a.kpack": "blas_lib_gfx90a",
        ".kpack/blas_lib_gfx90a:xnack+.kpack": "blas_lib_gfx90a:xnack+",
        ".kpack/notes.kpack": "unsorted_lib_generic",
    }
    assert ".kpack/notes.kpack" in report.unmatched


@pytest.mark.slow
@pytest.mark.parametrize("folder", [".kpack", "lib/rocm-kpack"])
def test_archives_go_to_the_artifact_of_the_library_that_refers_to_them(
    tmp_path: Path, dest: Path, folder: str
) -> None:
    root = make_core_prefix(tmp_path, "7.14.0")
    for name in ("librccl.so.1.0", "libodd.so"):
        build_fat_library(root / "lib" / name, [make_bundle(0, "gfx906 gfx90a:xnack+")])
    shutil.rmtree(root / ".kpack")
    split_tree(root, tmp_path / "split", SplitOrder(choice=SplitChoice(archives=folder)))
    made = lay_over(tmp_path / "split", tmp_path / "made")
    report = import_prefixes([made], dest, ROCM)
    with open_catalog(dest) as catalog:
        places = {entry.path: str(entry.artifact) for entry in catalog.entries if entry.path.endswith(".kpack")}
    assert {path: place for path, place in places.items() if "rccl" in path} == {
        f"{folder}/librccl.so.1.0_gfx906.kpack": "rccl_lib_gfx906",
        f"{folder}/librccl.so.1.0_gfx90a.kpack": "rccl_lib_gfx90a",
    }
    assert places[f"{folder}/libodd.so_gfx906.kpack"].endswith("_lib_gfx906")
    assert not [path for path in report.unmatched if path.endswith(".kpack")]


@pytest.mark.parametrize(
    ("library", "kernel", "artifact"),
    [
        ("bin/rocblas.dll", "bin/rocblas/library/Kernels_gfx1100.hsaco", "blas_lib_gfx1100"),
        ("bin/rocblas.dll", "bin/rocblas/library/Kernels_gfx90a-xnack+.hsaco", "blas_lib_gfx90a"),
        ("bin/rocblas.dll", "bin/rocblas/library/TensileLibrary_lazy.dat", "blas_lib_generic"),
        ("bin/rocblas.dll", "bin/rocblas/library/Kernels_gfx1100_gfx1101.hsaco", "blas_lib_generic"),
        ("lib/librocblas.so.5", "lib/rocblas/library/Kernels_gfx1100.hsaco", "blas_lib_generic"),
    ],
)
def test_kernels_for_one_gpu_get_their_own_artifact_only_in_windows_prefixes(
    tmp_path: Path, library: str, kernel: str, artifact: str
) -> None:
    prefix = tmp_path / "prefix"
    for path in (library, kernel, ".info/version"):
        (prefix / path).parent.mkdir(parents=True, exist_ok=True)
        (prefix / path).write_bytes(b"7.0.0")
    import_prefixes([prefix], tmp_path / "made", ROCM, targets_of=kernel_targets)
    (found,) = (tmp_path / "made").rglob(kernel.rpartition("/")[2])
    assert found.relative_to(tmp_path / "made").parts[0] == artifact
