"""Commands whose module or function a distribution lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from rocwheel.environment.dist_info import find_script_problems
from rocwheel.environment.read_tree import read_tree

if TYPE_CHECKING:
    from pathlib import Path

MODULE = b"def main(): pass\nclass App:\n    def run(): pass\nif True:\n    other = main\nfrom x import y as z\n"


def problems(reference: str, module: bytes = MODULE) -> list[str]:
    texts = {"demo/__init__.py": b"", "demo/_cli.py": module, "demo/_built.pyd": b"MZ"}
    text = f"[console_scripts]\nroc-obj = {reference}\n".encode()
    return [problem.found for problem in find_script_problems(text, texts, texts.__getitem__)]


@pytest.mark.parametrize(
    "reference",
    [
        "demo._cli:main",
        "demo._cli:App.run",
        "demo._cli:other",
        "demo._cli : z",
        "demo._cli:main [extra]",
        "demo._built:main",
        "elsewhere._cli:main",
    ],
)
def test_commands_whose_function_is_there_or_not_to_be_known_have_no_problem(reference: str) -> None:
    assert problems(reference) == []


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("demo._cli:absent", "the command 'roc-obj' calls absent of demo/_cli.py, which doesn't define it"),
        ("demo:main", "the command 'roc-obj' calls main of demo/__init__.py, which doesn't define it"),
        ("demo.absent:main", "the command 'roc-obj' calls a function of demo.absent, which the package lacks"),
        ("demo._cli", "the command 'roc-obj' has no function: 'demo._cli' is not like module:function"),
        ("rm -rf", "the command 'roc-obj' has no function: 'rm -rf' is not like module:function"),
    ],
)
def test_other_commands_have_one(reference: str, found: str) -> None:
    assert problems(reference) == [found]


@pytest.mark.parametrize(
    "module",
    [b"from x import *", b"def __getattr__(name): ...", b"globals()['main'] = 1", b"not Python at all"],
)
def test_modules_whose_names_only_show_when_they_run_are_not_judged(module: bytes) -> None:
    assert problems("demo._cli:main", module) == []


def test_a_module_of_more_than_256_kib_is_not_judged() -> None:
    (found,) = problems("demo._cli:main", b"x" * (256 << 10))
    assert found == "the command 'roc-obj' calls main of demo/_cli.py, which doesn't define it"
    assert problems("demo._cli:main", b"x" * (256 << 10) + b"\n") == []


def judged(commands: dict[str, str], texts: dict[str, bytes]) -> tuple[list[str], list[str]]:
    """Return which commands have a problem, and which modules were read."""
    read = []

    def note(path: str) -> bytes:
        read.append(path)
        return texts[path]

    lines = "".join(f"{name} = {reference}\n" for name, reference in commands.items())
    found = list(find_script_problems(f"[console_scripts]\n{lines}".encode(), texts, note))
    return [problem.facts[1] for problem in found], read


def test_modules_of_one_mib_together_are_judged_in_the_order_of_their_commands() -> None:
    texts = {f"m{number}.py": b"#" * (256 << 10) for number in range(6)}
    problematic, read = judged({f"c{number}": f"m{number}:main" for number in range(6)}, texts)
    assert problematic == ["c0", "c1", "c2", "c3"]
    assert read == ["m0.py", "m1.py", "m2.py", "m3.py"]


def test_a_module_of_several_commands_is_read_once() -> None:
    assert judged({"a": "m:one", "b": "m:two"}, {"m.py": b"def one(): pass"}) == (["b"], ["m.py"])


def test_a_text_that_is_none_of_entry_points_is_one_problem() -> None:
    (problem,) = find_script_problems(b"demo", (), lambda _: b"")
    assert problem.found == "its entry_points.txt can't be read (MissingSectionHeaderError)"


INFO = {
    "METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
    "entry_points.txt": "[console_scripts]\nroc-obj = demo._cli:roc_obj\n",
    "RECORD": "demo/__init__.py,,\ndemo/_cli.py,,\n",
}


def test_wheels_and_environments_have_the_same_problems(tmp_path: Path) -> None:
    files = {"demo/__init__.py": "", "demo/_cli.py": MODULE.decode()}
    files |= {f"demo-1.0.dist-info/{name}": text for name, text in INFO.items()}
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    for path in (wheel, tmp_path / "site"):
        (owner, *_) = read_tree([path]).distributions
        assert [problem.found for problem in owner.script_problems] == [
            "the command 'roc-obj' calls roc_obj of demo/_cli.py, which doesn't define it"
        ]


def test_a_damaged_module_does_not_end_the_reading(tmp_path: Path) -> None:
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        archive.writestr("demo/_cli.py", MODULE)
        for name, text in INFO.items():
            archive.writestr(f"demo-1.0.dist-info/{name}", text)
    data = wheel.read_bytes()
    at = data.index(MODULE)
    wheel.write_bytes(data[:at] + b"#" + data[at + 1 :])
    tree = read_tree([wheel])
    assert tree.distributions[0].script_problems == ()
    assert tree.by_path["demo/_cli.py"].problem
