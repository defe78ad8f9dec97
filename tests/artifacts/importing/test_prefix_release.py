"""The release of a prefix, from what its files say and how its libraries are called."""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.artifacts.importing.from_prefix import import_prefixes
from rocwheel.artifacts.importing.prefix_release import Sign, library_signs, stated_signs
from rocwheel.artifacts.importing.table import load_table
from rocwheel.core.errors import InputError
from tests.support.damage import unless_refused
from tests.support.example_counts import examples

ROCM = load_table("prefix.toml")
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
def test_a_file_states_the_release(tmp_path: Path, name: str, text: str) -> None:
    assert version_of(make_prefix(tmp_path / "rocm", **{name: text})) == "6.4.1"


def test_header_that_only_includes_another_states_nothing(tmp_path: Path) -> None:
    root = make_prefix(tmp_path, **{"include/rocm_version.h": "#include <rocm-core/rocm_version.h>\n"})
    assert stated_signs(root, ["include/rocm_version.h"]) == []


@pytest.mark.parametrize(("data", "found"), [(b"unknown\n", "'unknown'"), (b"\xff\xfe6.4", "'\ufffd\ufffd6.4'")])
def test_file_that_states_no_version_is_refused(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / ".info/version"
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(InputError) as error:
        stated_signs(tmp_path, [".info/version"])
    assert str(error.value) == (
        f"{path}: says {found}; expected a version such as 6.4.0. "
        "Correct the file, or remove it and give the version to `rocwheel build --version`."
    )


def test_without_such_a_file_the_names_of_the_libraries_tell_the_release(tmp_path: Path) -> None:
    assert version_of(make_prefix(tmp_path / "rocm")) == "6.4.1"


def test_libraries_that_differ_in_the_last_number_leave_the_release_unknown(tmp_path: Path) -> None:
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
def test_number_at_the_end_of_a_library_is_a_release_only_if_it_can_be_one(path: str, signs: list[Sign]) -> None:
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
def test_prefix_that_mixes_two_releases_is_refused(tmp_path: Path, files: dict[str, str], found: str) -> None:
    root = make_prefix(tmp_path / "rocm", **files)
    with pytest.raises(InputError) as error:
        import_prefixes([root], tmp_path / "artifacts", ROCM)
    assert str(error.value) == (
        f"{root}: mixes releases of ROCm ({found}); expected files of one release. "
        "Remove what is left of the others, or install one release into a folder of its own."
    )
    assert not (tmp_path / "artifacts").exists()


def test_two_sonames_of_one_library_in_one_release_are_no_mixture(tmp_path: Path) -> None:
    twice = {"lib/librocprofiler64.so.1.0.60401": "", "lib/librocprofiler64.so.2.0.60401": ""}
    assert version_of(make_prefix(tmp_path / "rocm", **twice)) == "6.4.1"


def test_pipe_as_version_file_is_refused_not_waited_for(tmp_path: Path) -> None:
    root = make_prefix(tmp_path / "rocm")
    (root / ".info").mkdir()
    os.mkfifo(root / ".info/version")
    with pytest.raises(InputError, match=r"\.info/version: .*not a regular file"):
        import_prefixes([root], tmp_path / "artifacts", ROCM)


@pytest.mark.parametrize(
    "name", ["lib/python3/x.py", "bin/ls", "share/man/man1/ls.1", "lib/llvm/bin/clang", "bin/clinfo"]
)
def test_folder_of_other_software_is_refused_before_it_is_copied(tmp_path: Path, name: str) -> None:
    root = tmp_path / "usr"
    (root / name).parent.mkdir(parents=True)
    (root / name).write_text("")
    with pytest.raises(InputError) as error:
        import_prefixes([root], tmp_path / "artifacts", ROCM)
    assert str(error.value) == (
        f"{root}: holds no file that tells it is ROCm, among 1 file. Check the path, or the --table option."
    )


def test_folder_around_a_prefix_is_refused_with_the_prefixes_in_it(tmp_path: Path) -> None:
    for name in ("rocm-6.4.1", "rocm-7.0.0"):
        make_prefix(tmp_path / "opt" / name)
    with pytest.raises(InputError) as error:
        import_prefixes([tmp_path / "opt"], tmp_path / "artifacts", ROCM)
    assert str(error.value) == (
        f"{tmp_path}/opt: holds no file that tells it is ROCm, among 2 files. "
        f"Give the folder itself: {tmp_path}/opt/rocm-6.4.1, {tmp_path}/opt/rocm-7.0.0."
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
def test_whatever_states_a_version_gives_one_or_an_error_that_names_the_prefix(stated: dict[str, bytes]) -> None:
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
def test_any_name_of_a_library_says_a_release_or_nothing(parts: list[str]) -> None:
    for sign in library_signs(["".join(parts)]):
        assert re.fullmatch(r"1?[0-9]\.1?[0-9]\.1?[0-9]", sign.release)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rocm_version.h", HEADER.replace("   4", f" {'9' * 5000}")),
        ("therock_manifest.json", '{"rocm_version": "of today"}'),
    ],
)
def test_what_is_no_version_is_refused_in_each_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=re.escape(name)):
        stated_signs(tmp_path, [name])


def test_a_number_on_the_line_after_a_definition_is_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "rocm_version.h").write_text(HEADER.replace("   4", "\n4"))
    assert stated_signs(tmp_path, ["rocm_version.h"]) == []
