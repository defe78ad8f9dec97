"""Import tables are read from TOML, and bad ones are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.importing.choose_artifact import ImportRules
from rocwheel.artifacts.importing.table import FolderMove, ImportTable, load_table
from rocwheel.core.errors import InputError, ProblemsError

if TYPE_CHECKING:
    from pathlib import Path

EMPTY = "artifact = []\nplace = []\ncomponent = []\nbase_libraries = []\n"


@pytest.mark.parametrize("name", ["debian.toml", "prefix.toml"])
def test_own_tables_are_good(name: str) -> None:
    table = load_table(name)

    ImportRules(table)
    assert all("_" not in rule.name for rule in table.artifact), "no field of an artifact's name may hold an underscore"
    assert all(edit.reason for edit in table.edit)


@pytest.mark.parametrize(
    ("place", "path", "destination"),
    [
        (FolderMove("usr/lib/*-linux-gnu", "lib"), "usr/lib/x86_64-linux-gnu/cmake/hip/a", "lib/cmake/hip/a"),
        (FolderMove("usr/lib/*-linux-gnu", "lib"), "usr/lib/libx.so", None),
        (FolderMove("usr/lib/*-linux-gnu", "lib"), "usr/lib/x86_64-linux-gnu", None),
        (FolderMove("usr/lib/llvm-*", "lib/llvm"), "usr/lib/llvm-15/bin/clang", "lib/llvm/bin/clang"),
        (FolderMove("usr", ""), "usr/bin/hipcc", "bin/hipcc"),
        (FolderMove("usr", ""), "usrlocal/bin", None),
        (FolderMove("", ""), "bin/hipcc", "bin/hipcc"),
        (FolderMove("", "sub"), "bin/hipcc", "sub/bin/hipcc"),
    ],
)
def test_a_folder_move_moves_what_is_in_its_folder(place: FolderMove, path: str, destination: str | None) -> None:
    assert place.move(path) == destination


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "table.toml"
    path.write_text(text)
    return path


def test_smallest_table_is_read(tmp_path: Path) -> None:
    assert load_table(write(tmp_path, EMPTY)) == ImportTable((), (), (), ())


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("artifact = [", "not an import table: Invalid value (at end of document)"),
        (EMPTY + "colour = 1\n", "not an import table: Object contains unknown field `colour`"),
        ("artifact = []\n", "not an import table: Object missing required field `place`"),
        (
            EMPTY + "[[link]]\npath = 3\nto = 'a'\nartifact = 'b'\n",
            "not an import table: Expected `str`, got `int` - at `$.link[0].path`",
        ),
        (
            EMPTY + "[[edit]]\nfiles = ['a']\nfind = '('\nreplace = ''\nreason = 'r'\n",
            "not an import table: missing ), unterminated subpattern at position 0",
        ),
        (
            EMPTY + "[[edit]]\nfiles = ['a']\nfind = 'x'\nreplace = '\\2'\nreason = 'r'\n",
            "not an import table: invalid group reference 2 at position 1",
        ),
        ("a = " + "[" * 60000, "not an import table: it is nested too deeply"),
        (
            EMPTY + "[[edit]]\nfiles = ['a']\nfind = 'x'\nreplace = '\\g<n>'\nreason = 'r'\n",
            "not an import table: unknown group name 'n'",
        ),
        (
            EMPTY + "[[edit]]\nfiles = ['a']\nfind = 'x{99999999999}'\nreplace = ''\nreason = 'r'\n",
            "not an import table: the repetition number is too large",
        ),
        (
            EMPTY + f"[[edit]]\nfiles = ['a']\nfind = '{'(' * 3000}'\nreplace = ''\nreason = 'r'\n",
            "not an import table: maximum recursion depth exceeded",
        ),
    ],
    ids=[
        *("not TOML", "unknown field", "missing field", "wrong type", "bad expression", "bad replacement"),
        *("deep TOML", "unknown group", "huge repetition", "deep expression"),
    ],
)
def test_bad_table_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    path = write(tmp_path, text)

    with pytest.raises(InputError) as error:
        load_table(path)

    assert str(error.value) == f"{path}: {fault}; expected TOML as docs/debian.md describes it"


def test_names_and_places_that_cannot_be_are_refused_together(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "component = []\nbase_libraries = []\n[[artifact]]\nname = 'my_rocm'\n[[place]]\nfrom = 'usr'\nto = '../usr'\n"
        "[[link]]\npath = '/llvm'\nto = 'lib/llvm'\nartifact = 'base'\n",
    )

    with pytest.raises(ProblemsError) as error:
        load_table(path)

    assert str(error.value) == (
        f"{path}: 3 problems\n"
        "  my_rocm_run_generic: is not an artifact name; "
        "expected {name}_{component}_{target} of letters, digits and '.+:~-', such as blas_lib_gfx942\n"
        "  '../usr': climbs with '..'; expected a path inside the prefix\n"
        "  '/llvm': is absolute; expected a path inside the prefix"
    )


def test_absent_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "absent.toml"

    with pytest.raises(InputError) as error:
        load_table(path)

    assert str(error.value) == f"{path}: can't be read (No such file or directory). Check the --table option."
