"""Which modules a command line loads, and the order of the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Annotated

import pytest

import rocwheel.cli
from rocwheel.cli.app import Group
from rocwheel.cli.commands import needed_modules
from rocwheel.cli.parameters import argument
from tests.support.commands import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path


def run_python(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
def test_every_module_with_a_command_is_listed(tmp_path: Path) -> None:
    # Given every module of the command line, whether it is listed or not
    names = [module.name for module in walk_packages(rocwheel.cli.__path__, "rocwheel.cli.")]
    code = (
        f"import importlib, json\nfor name in {names}: importlib.import_module(name)\n"
        "from rocwheel.cli.app import app as root\n"
        "groups = {name: getattr(part, 'commands', None) for name, part in root.commands.items()}\n"
        "print(json.dumps([f'{name} {one}' if parts else name for name, parts in groups.items()"
        " for one in parts or ('',)]))"
    )
    assert sorted(json.loads(run_python(code, tmp_path))) == sorted(COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "loaded", "not_loaded"),
    [
        (["--version"], [], ["about", "build", "index", "targets"]),
        (["index", "--help"], ["index"], ["about", "audit", "build", "jax", "index_yank"]),
        (["index", "dist"], ["index"], ["index_mirror"]),
        (["index", "yank", "a.whl"], ["index_yank"], ["index_mirror"]),
        (["targets", "list"], ["targets"], ["targets_code", "about", "build", "device"]),
        (["targets", "runs-on"], ["targets", "targets_code"], ["about"]),
        (["targets", "--help"], ["targets", "targets_code"], ["about", "build", "device"]),
        (["targets", "no-such"], ["targets", "targets_code"], ["about", "build", "device"]),
        (["no-such"], ["about", "index", "targets"], []),
        (["--help"], ["about", "index", "targets"], []),
        ([], ["about", "index", "targets"], []),
    ],
    ids=" ".join,
)
def test_a_command_line_loads_only_its_own_command(
    tmp_path: Path, words: list[str], loaded: list[str], not_loaded: list[str]
) -> None:
    code = f"import json, sys, rocwheel.cli\nrocwheel.cli.load_commands({words})\nprint(json.dumps([*sys.modules]))"
    modules = set(json.loads(run_python(code, tmp_path)))
    assert [name for name in loaded if f"rocwheel.cli.{name}" not in modules] == []
    assert [name for name in not_loaded if f"rocwheel.cli.{name}" in modules] == []


def test_every_command_line_loads_the_module_of_its_command() -> None:
    modules = {words: command.callback.__module__ for words, command in COMMANDS.items()}
    needed = {words: [f"rocwheel.cli.{name}" for name in needed_modules(words.split())] for words in COMMANDS}
    assert [words for words, module in modules.items() if module not in needed[words]] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "others"),
    [
        ("--version", {"click", "msgspec"}),
        ("index --help", {"backports", "click", "deflate", "msgspec", "packaging", "rich", "zlib_ng"}),
    ],
)
def test_short_commands_do_not_load_other_libraries(tmp_path: Path, words: str, others: set[str]) -> None:
    code = (
        f"import atexit, sys; sys.argv = ['rocwheel', *{words.split()}]; from rocwheel.__main__ import main\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    loaded = set(done.stderr.split())
    tops = {name.partition(".")[0] for name in loaded} - {"__main__", "rocwheel"}
    installed = {top for top in tops if (module := find_spec(top)) and "site-packages" in (module.origin or "")}
    assert sorted(installed - others - {"_distutils_hack", "typing_extensions"}) == []
    slow = (
        "rich.console",
        "rich.progress",
        "rich.text",
        "rocwheel.build.building",
        "rocwheel.build.cluster.dask_cluster",
        "rocwheel.audit",
        "rocwheel.stores.objects",
        "rocwheel.stores.open",
        "rocwheel.stores.web",
        "urllib.request",
    )
    assert [name for name in sorted(loaded) if name.startswith(slow)] == []


@pytest.mark.slow
def test_the_command_order_does_not_depend_on_load_order(tmp_path: Path) -> None:
    code = (
        "import json, rocwheel.cli, rocwheel.cli.targets_code\n"
        "for words in (['--version'], ['device', 'list'], ['about'], []): rocwheel.cli.load_commands(words)\n"
        "root = rocwheel.cli.app\n"
        "print(json.dumps([[*root.commands], [*root.commands['targets'].commands]]))"
    )
    names, targets = json.loads(run_python(code, tmp_path))
    assert names[:3] == ["demo", "build", "audit"]
    assert names[-6:] == ["artifacts", "device", "runpath", "jax", "torch", "wheel"]
    assert targets == ["list", "flags", "detect", "runs-on", "coherent"]


def test_a_two_word_command_coexists_with_a_command_of_the_first_word() -> None:
    app = Group("tool")
    called: list[str] = []

    @app.command("index")
    def index(folder: Annotated[str, argument(help="")]) -> None:
        called.append(folder)

    @app.command("index yank")
    def yank(file: Annotated[str, argument(help="")]) -> None:
        called.append(f"yank {file}")

    for words in (["index", "dist"], ["index", "yank", "a.whl"], ["index", "./yank"], ["index", "--", "yank"]):
        app(words, standalone_mode=False)
    assert called == ["dist", "yank a.whl", "./yank", "yank"]
