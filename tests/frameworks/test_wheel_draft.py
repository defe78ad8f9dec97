"""Tests of `rocwheel.frameworks.wheel_draft`."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import pytest
from packaging.tags import sys_tags

from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileRange
from rocwheel.frameworks.wheel_draft import (
    InputFiles,
    is_importable_by_name,
    parse_commits,
    python_tag,
    read_runfiles_manifest,
    render_commit_info,
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("pjrt/plugin.so", "rocm/_a.so", "rocm/_b.so", "other/_a.so"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def test_a_file_is_found_in_a_folder_by_its_path_suffix(tree: Path) -> None:
    assert InputFiles([tree]).find("pjrt/plugin.so") == {"plugin.so": tree / "pjrt/plugin.so"}
    assert InputFiles([tree]).find("plugin.so") == {"plugin.so": tree / "pjrt/plugin.so"}


def test_a_pattern_finds_every_matching_file(tree: Path) -> None:
    assert list(InputFiles([tree]).find("rocm/_*.so")) == ["_a.so", "_b.so"]


def test_a_file_given_explicitly_takes_precedence_over_folders(tree: Path) -> None:
    given = tree / "rocm/_a.so"
    assert InputFiles([tree / "other", given]).find("_a.so") == {"_a.so": given}


def test_the_manifest_is_searched_last() -> None:
    inputs = InputFiles([], {"main/pjrt/plugin.so": Path("/x/plugin.so")})
    assert inputs.find("pjrt/plugin.so") == {"plugin.so": Path("/x/plugin.so")}


def test_symlinks_to_the_same_file_are_one_input(tree: Path) -> None:
    (tree / "linked").symlink_to(tree / "rocm")
    (tree / "again").mkdir()
    (tree / "again/_b.so").symlink_to(tree / "rocm/_b.so")
    assert list(InputFiles([tree]).find("_b.so")) == ["_b.so"]


def test_a_missing_file_is_reported_with_the_places_searched(tree: Path) -> None:
    with pytest.raises(InputError) as caught:
        InputFiles([tree]).find("x.so")
    assert str(caught.value) == (
        f"x.so: isn't among the inputs ({tree}). Build the target that creates this file, or pass the file's folder "
        "with --src."
    )


def test_two_files_that_match_a_name_are_refused(tree: Path) -> None:
    with pytest.raises(InputError) as caught:
        InputFiles([tree]).find("_a.so")
    assert str(caught.value) == (
        f"_a.so: matches several inputs: {tree}/other/_a.so and {tree}/rocm/_a.so; expected one file. "
        "Use a longer path suffix in the description."
    )


def test_a_source_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        InputFiles([tmp_path / "bazel-bin"])
    assert str(caught.value) == f"{tmp_path}/bazel-bin: does not exist. Build the source, or correct --src."


def test_escapes_in_a_runfiles_manifest_are_decoded(tmp_path: Path) -> None:
    path = tmp_path / "MANIFEST"
    path.write_text("main/a.so /out/a.so\n main/b\\sc.so /out/b c\\nd\\b.so\nmain/__init__.py \n")
    assert read_runfiles_manifest(path) == {"main/a.so": Path("/out/a.so"), "main/b c.so": Path("/out/b c\nd\\.so")}


def test_a_file_that_is_not_a_manifest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "MANIFEST"
    path.write_text("main/a.so /out/a.so\nnonsense\n")
    with pytest.raises(InputError) as caught:
        read_runfiles_manifest(path)
    assert str(caught.value) == (
        f"{path}: line 2 is 'nonsense'; expected a name, a space, and a path. Check whether this file is Bazel's "
        "MANIFEST."
    )


def test_files_of_the_same_name_that_match_a_pattern_are_refused(tree: Path) -> None:
    with pytest.raises(InputError) as caught:
        InputFiles([tree]).find("_*.so")
    assert str(caught.value) == (
        f"_*.so: matches several inputs with the same name: {tree}/other/_a.so and {tree}/rocm/_a.so; expected "
        "one file. "
        "Use a longer path suffix in the description."
    )


def test_texts_of_the_same_name_keep_their_folders(tree: Path) -> None:
    assert InputFiles([tree]).texts("*/_a.so") == {
        "other/_a.so": tree / "other/_a.so",
        "rocm/_a.so": tree / "rocm/_a.so",
    }
    assert InputFiles([tree]).texts("plugin.*") == {"plugin.so": tree / "pjrt/plugin.so"}


def test_a_pipe_is_not_accepted_as_a_runfiles_manifest(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="it isn't a regular file"):
        read_runfiles_manifest(tmp_path / "pipe")


def test_commits_are_sorted_by_repository() -> None:
    commits = parse_commits(["jax=abcdef0", "ROCm/xla=0123456"])
    assert render_commit_info(commits) == (
        '"""The commits that this package was built from."""\n\n'
        'commits = {\n    "ROCm/xla": "0123456",\n    "jax": "abcdef0",\n}\n'
    )


@pytest.mark.parametrize("text", ["jax=", "jax=main", "=abcdef0", 'a"b=abcdef0', "abcdef0", "jax=abcdef0\n"])
def test_a_malformed_commit_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_commits([text])
    assert str(caught.value) == (
        f"--commit: is {text!r}; expected REPOSITORY=COMMIT with a commit of 7 to 64 hexadecimal digits. "
        "Check whether the command that looks up the commit failed."
    )


def test_two_commits_for_one_repository_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        parse_commits(["jax=abcdef0", "jax=abcdef1"])
    assert str(caught.value) == "--commit: has two commits for jax: abcdef0 and abcdef1; expected one commit"


WINDOW = 16 << 20  # bytes that are searched at once


@pytest.mark.parametrize(
    ("extensions", "python", "tag"),
    [
        ([], "", "py3-none"),
        (["a/_x.so"], "3.12", "cp312-cp312"),
        (["a/_x.so"], "3.13-ft", "cp313-cp313t"),
        (["a/_x.abi3.so"], "3.12", "cp312-abi3"),
        (["a/_x.abi3.so", "a/_y.so"], "3.12", "cp312-cp312"),
        (["a/_x.abi3.so", "a/_y.cpython-311-x86_64-linux-gnu.so"], "", "cp311-cp311"),
        (["a/_x.cpython-311-x86_64-linux-gnu.so"], "", "cp311-cp311"),
        (["a/_x.cpython-314t-x86_64-linux-gnu.so", "a/_y.so"], "", "cp314-cp314t"),
    ],
)
def test_the_tag_is_derived_from_the_extension_modules(extensions: list[str], python: str, tag: str) -> None:
    assert python_tag(extensions, python) == tag


@pytest.mark.parametrize(
    ("required", "tag"),
    [
        (">=3.11", "cp311-abi3"),
        (">3.11.4,<4", "cp311-abi3"),
        (">=3.9,!=3.9.*", "cp310-abi3"),
        ("==3.12.*", "cp312-abi3"),
    ],
)
def test_stable_abi_modules_are_tagged_for_the_oldest_required_python(required: str, tag: str) -> None:
    assert python_tag(["a/_x.abi3.so"], requires_python=required) == tag


@pytest.mark.parametrize(
    ("extension", "python", "required"),
    [
        ("_x.so", "3.11", ">=3.11.4"),
        ("_x.so", "3.11", "==3.11.7"),
        ("_x.so", "3.13-ft", ">=3.13"),
        ("_x.abi3.so", "3.10", ">=3.11"),
    ],
)
def test_a_python_that_satisfies_requires_python_is_accepted(extension: str, python: str, required: str) -> None:
    assert python_tag([extension], python, required) == python_tag([extension], python)


@pytest.mark.parametrize(
    ("extension", "python", "required", "minor"),
    [
        ("_x.so", "3.9", ">=3.11", 9),
        ("_x.so", "3.13-ft", "<3.13", 13),
        ("_x.cpython-310-x86_64-linux-gnu.so", "", ">=3.11", 10),
        ("_x.abi3.so", "3.13", "<3.13", 13),
    ],
)
def test_a_python_excluded_by_the_range_is_refused(extension: str, python: str, required: str, minor: int) -> None:
    with pytest.raises(InputError) as caught:
        python_tag([extension], python, required)
    assert str(caught.value) == (
        f"{extension}: is for Python 3.{minor}; expected one of {required}. "
        "Correct --python-version, or the description's requires-python."
    )


def test_the_tag_is_known_to_installers() -> None:
    tag = python_tag(["_x.so"], f"3.{sys.version_info.minor}")
    assert tag in {f"{known.interpreter}-{known.abi}" for known in sys_tags()}


@pytest.mark.parametrize(
    ("extensions", "python", "text"),
    [
        (
            [],
            "3.99",
            (
                "--python-version: is 3.99, but no file is an extension module. "
                "Remove the option: wheels without extension modules work with every Python version."
            ),
        ),
        (["a/_x.so"], "312", "--python-version: is '312'; expected a version such as 3.12 or 3.13-ft"),
        (["a/_x.so"], "3.12-ft", "--python-version: is '3.12-ft'; expected a version such as 3.12 or 3.13-ft"),
        (
            ["a/_x.abi3.so"],
            "3.13-ft",
            (
                "a/_x.abi3.so: is for the stable ABI, which free-threaded Python versions can't load; "
                "expected a module for "
                "cp313-cp313t"
            ),
        ),
        (
            ["a/_x.abi3.so", "a/_y.cpython-314t-x86_64-linux-gnu.so"],
            "",
            (
                "a/_x.abi3.so: is for the stable ABI, which free-threaded Python versions can't load; "
                "expected a module for "
                "cp314-cp314t"
            ),
        ),
        (
            ["a/_x.abi3.so"],
            "",
            (
                "a/_x.abi3.so: is an extension module whose name has no Python version. Add --python-version, such as "
                "--python-version 3.12."
            ),
        ),
        (
            ["a/_x.cpython-311-x86_64-linux-gnu.so"],
            "3.12",
            (
                "a/_x.cpython-311-x86_64-linux-gnu.so: is an extension module for cp311-cp311; expected a module for "
                "cp312-cp312"
            ),
        ),
    ],
)
def test_contradictory_python_options_are_refused(extensions: list[str], python: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        python_tag(extensions, python)
    assert str(caught.value) == text


def test_extension_modules_of_the_interpreter_are_recognized() -> None:
    folder = Path(sysconfig.get_path("platstdlib"), "lib-dynload")
    modules = sorted(folder.glob("*.so"))
    if not modules:
        pytest.skip("this Python has its modules built in")
    assert [path.name for path in modules if not is_importable_by_name(path.name, FileRange.whole(path))] == []


def test_a_library_that_defines_another_module_is_not_importable_by_name(tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(b"\0PyInit_other\0")
    assert not is_importable_by_name("a/libx.so", FileRange.whole(path))


@pytest.mark.parametrize("start", [0, WINDOW - 1, WINDOW - 8, WINDOW, WINDOW + 2, WINDOW + 8, 2 * WINDOW - 4])
def test_the_init_function_of_a_module_is_found_at_any_offset(tmp_path: Path, start: int) -> None:
    path = tmp_path / "_x.so"
    with path.open("wb") as file:
        file.seek(start)
        file.write(b"\0PyInit__x\0")
        file.truncate(2 * WINDOW + 100)
    assert is_importable_by_name("a/_x.so", FileRange.whole(path))
