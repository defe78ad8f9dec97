"""Names in what the commands print: those of targets give a terminal no commands, and paths are what they are."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def commands(load_sdk: Callable[..., Any], tmp_path: Path) -> Any:
    """Return the module of commands, next to packages whose targets hold control characters."""
    load = load_sdk()
    site = tmp_path / "site"
    for name, text in {
        "_rocm_sdk_core/__init__.py": "",
        "_rocm_sdk_core/share/therock/dist_info.json": json.dumps({"dist_amdgpu_targets": "gfx906;\x1b[2Jgfx\n1030"}),
        "_rocm_sdk_libraries/__init__.py": "",
        "_rocm_sdk_libraries/.devel_links/gfx1100\x9b31m.json": "[]",
    }.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return load("rocm_sdk._commands")


def test_targets_are_printed_on_one_line_without_control_characters(
    commands: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands.run_command(["targets"]) == 0
    assert capsys.readouterr().out == "gfx906;\\x1b[2Jgfx\\n1030;gfx1100\\x9b31m\n"


def test_the_tree_path_in_messages_has_no_control_characters(
    commands: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    devel = SimpleNamespace(get_devel_root=lambda **_: "/a\x1b[2J", restore_device_links=lambda: 0)
    monkeypatch.setattr(commands, "import_module", lambda _: devel)
    assert commands.run_command(["init"]) == 0
    assert capsys.readouterr().out == "The ROCm development files are ready in /a\\x1b[2J\n"


def test_a_path_is_printed_unchanged(
    commands: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(commands, "find_root", lambda _: tmp_path / "a\x1b[2J\n")
    assert commands.run_command(["path", "--root"]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/a\x1b[2J\n\n"
