"""What a project says about its audit, in ``pyproject.toml`` or a recipe."""

from __future__ import annotations

import errno
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.settings import find_settings
from rocwheel.core.errors import InputError
from tests.support.libraries import needs_compiler

if TYPE_CHECKING:
    from tests.support.command_line import Run

pytestmark = [pytest.mark.slow, needs_compiler, pytest.mark.usefixtures("in_an_empty_folder")]


NESTED = "[" * 100_000


def test_deeply_nested_settings_are_an_error(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(f"x = {NESTED}")
    done = run("audit", bad_wheel, "--config", tmp_path / "settings.toml")
    assert (done.status, done.stderr.startswith(f"error: {tmp_path}/settings.toml: ")) == (2, True)


@pytest.mark.parametrize(
    "text", ["", '[project]\nname = "demo"\n', "[tool.rocwheel]\n"], ids=["none", "others", "tool"]
)
def test_a_named_settings_file_must_have_audit_settings(run: Run, bad_wheel: Path, tmp_path: Path, text: str) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text(text)
    assert run("audit", bad_wheel).status == 1
    expected = "expected [tool.rocwheel.audit], or [audit] in a recipe. Check --config."
    assert run("audit", bad_wheel, "--config", settings) == (
        2,
        "",
        f"error: {settings}: has no audit settings; {expected}\n",
    )


def test_settings_can_be_in_the_pyproject_file(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    settings = '[tool.rocwheel.audit.per-file-ignore]\n"demo/*.so" = ["run-path-*"]\n'
    (tmp_path / "pyproject.toml").write_text(settings)
    assert run("audit", bad_wheel).status == 0


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ('select = ["tag-*"]', 0),
        ('select = ["run-path-*"]', 1),
        ('ignore = ["run-path-relative"]', 0),
        ('expect-tag = "rpath"\nselect = ["run-path-tag"]', 1),
        ('expect-runpath = "rocm_dis/lib"\nselect = ["run-path-unexpected"]', 0),
        ('system-libraries = ["libx.so"]\ncpu-level = "x86-64-v2"\nclosed = true\nignore = ["run-path-relative"]', 0),
    ],
)
def test_settings_select_what_is_checked(run: Run, bad_wheel: Path, tmp_path: Path, settings: str, status: int) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.rocwheel.audit]\n{settings}\n")
    assert run("audit", bad_wheel).status == status


def test_options_override_settings(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rocwheel.audit]\nselect = ["tag-*"]\n')
    assert run("audit", bad_wheel, "--select", "run-path-*").status == 1


def test_a_rule_pattern_that_matches_no_rule_is_refused(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rocwheel.audit.per-file-ignore]\n"*" = ["runpath-*"]\n')
    finished = run("audit", bad_wheel)
    assert finished.status == 2
    assert finished.stderr.startswith(
        "error: audit rules: 'runpath-*' matches no rule; expected a rule such as run-path-"
    )


@pytest.mark.parametrize("setting", ["dlopen", "loaded-by", "per-file-ignore"])
def test_a_path_pattern_that_matches_no_file_is_reported(
    run: Run, bad_wheel: Path, tmp_path: Path, setting: str
) -> None:
    table = '"dmo/*" = ["run-path-relative"]\n"demo/*" = ["run-path-relative"]\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.rocwheel.audit.{setting}]\n{table}")
    finished = run("audit", bad_wheel)
    assert finished.stderr == f"warning: the setting {setting} 'dmo/*' matches no file\n"
    assert json.loads(run("audit", bad_wheel, "--json").stdout)["idle_patterns"] == [f"{setting} 'dmo/*'"]


def test_a_recipe_may_declare_libraries_opened_by_name(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[audit]\nselect = ["unresolved-dlopen"]\n[audit.dlopen]\n"demo/*.so" = ["libfoo.so.1"]\n')
    finished = run("audit", bad_wheel, "--config", recipe)
    assert finished.status == 1
    assert "opens libfoo.so.1 at run time, which nothing provides" in finished.stdout


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[tool.rocwheel.audit]\nselct = []\n", "Object contains unknown field `selct` - at `$.tool.rocwheel.audit`"),
        (
            "[tool.rocwheel.audit]\nclosed = 1\n",
            "Expected `bool | null`, got `int` - at `$.tool.rocwheel.audit.closed`",
        ),
    ],
    ids=["misspelled", "wrong type"],
)
def test_invalid_settings_are_reported(run: Run, bad_wheel: Path, tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "settings.toml").write_text(text)
    finished = run("audit", bad_wheel, "--config", tmp_path / "settings.toml")
    expected = "settings in [tool.rocwheel.audit] as described in docs/audit.md"
    assert finished == (2, "", f"error: {tmp_path / 'settings.toml'}: {found}; expected {expected}\n")


def test_a_disk_error_while_looking_for_settings_is_reported_with_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> bool:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "is_file", fail)
    with pytest.raises(InputError, match=re.escape(f"{tmp_path}/pyproject.toml: can't be read (Input/output error)")):
        find_settings(None)
