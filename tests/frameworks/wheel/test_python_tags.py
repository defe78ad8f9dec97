"""The Python part of compatibility tags."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest
from packaging.tags import sys_tags

from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileRange
from rocwheel.frameworks.wheel.python_tags import is_importable_by_name, python_tag

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
def test_the_tag_follows_from_the_modules(extensions: list[str], python: str, tag: str) -> None:
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
def test_modules_for_the_stable_abi_are_for_the_oldest_python_that_is_required(required: str, tag: str) -> None:
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
def test_a_python_that_is_required_is_right(extension: str, python: str, required: str) -> None:
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
def test_a_python_that_is_ruled_out_is_refused(extension: str, python: str, required: str, minor: int) -> None:
    with pytest.raises(InputError) as caught:
        python_tag([extension], python, required)
    assert str(caught.value) == (
        f"{extension}: is for Python 3.{minor}; expected one of {required}. Correct --python, or the description's "
        "requires-python."
    )


def test_a_tag_is_one_that_installers_know() -> None:
    tag = python_tag(["_x.so"], f"3.{sys.version_info.minor}")
    assert tag in {f"{known.interpreter}-{known.abi}" for known in sys_tags()}


@pytest.mark.parametrize(
    ("extensions", "python", "text"),
    [
        (
            [],
            "3.99",
            (
                "--python: is 3.99, but no file is an extension module. Leave it out: wheels without extension modules "
                "are for every Python."
            ),
        ),
        (["a/_x.so"], "312", "--python: is '312'; expected a version such as 3.12 or 3.13-ft"),
        (["a/_x.so"], "3.12-ft", "--python: is '3.12-ft'; expected a version such as 3.12 or 3.13-ft"),
        (
            ["a/_x.abi3.so"],
            "3.13-ft",
            (
                "a/_x.abi3.so: is for the stable ABI, which free-threaded Pythons don't load; expected a module for "
                "cp313-cp313t"
            ),
        ),
        (
            ["a/_x.abi3.so", "a/_y.cpython-314t-x86_64-linux-gnu.so"],
            "",
            (
                "a/_x.abi3.so: is for the stable ABI, which free-threaded Pythons don't load; expected a module for "
                "cp314-cp314t"
            ),
        ),
        (
            ["a/_x.abi3.so"],
            "",
            (
                "a/_x.abi3.so: is an extension module whose name has no Python version. Give --python, such as "
                "--python 3.12."
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
def test_contradictions_are_refused(extensions: list[str], python: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        python_tag(extensions, python)
    assert str(caught.value) == text


def test_modules_of_the_interpreter_are_known_as_such() -> None:
    folder = Path(sysconfig.get_path("platstdlib"), "lib-dynload")
    modules = sorted(folder.glob("*.so"))
    if not modules:
        pytest.skip("this Python has its modules built in")
    assert [path.name for path in modules if not is_importable_by_name(path.name, FileRange.whole(path))] == []


def test_a_library_that_defines_other_modules_is_none(tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(b"\0PyInit_other\0")
    assert not is_importable_by_name("a/libx.so", FileRange.whole(path))


@pytest.mark.parametrize("start", [0, WINDOW - 1, WINDOW - 8, WINDOW, WINDOW + 2, WINDOW + 8, 2 * WINDOW - 4])
def test_the_function_of_a_module_is_found_wherever_it_stands(tmp_path: Path, start: int) -> None:
    path = tmp_path / "_x.so"
    with path.open("wb") as file:
        file.seek(start)
        file.write(b"\0PyInit__x\0")
        file.truncate(2 * WINDOW + 100)
    assert is_importable_by_name("a/_x.so", FileRange.whole(path))
