"""Commands that fail with ``--json``: a document of the errors, and the same text for people."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.support.commands import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

ABSENT = {
    "artifacts archive": "absent -o out",
    "artifacts extract": "absent.tar.zst -o out",
    "artifacts fetch": "absent -o out",
    "artifacts import": "absent.deb -o out",
    "artifacts list": "absent",
    "artifacts merge": "absent absent2 --primary absent -o out",
    "audit": "absent.whl",
    "build": "--artifact-dir absent -d out",
    "demo": "-d file",
    "device bundle": "absent -o out",
    "device compress": "absent -o out",
    "device extract": "absent",
    "device join": "absent -o out",
    "device list": "absent",
    "device prune": "absent -o out --targets gfx906",
    "device retarget": "gfx1030=gfx1031 absent -o out",
    "device split": "absent -o out",
    "diff": "absent absent2",
    "index": "absent",
    "index mirror": "file:///absent --project rocm -o out",
    "index yank": "absent",
    "inspect": "file --limit 0",
    "jax bazelrc": "--settings absent",
    "jax commands": "--settings absent --version 1.0",
    "jax migrate": "absent",
    "jax patch": "absent",
    "jax starlark": "file",
    "jax translate": "-- cp",
    "jax wheel-targets": "--settings absent",
    "jax wheel-binary": "pjrt --version 1.0 -- @absent",
    "jax wheel": "pjrt --version 1.0 --spec absent",
    "lock": "rocm[device]",
    "promote": "absent --to 7.2.0 -o out",
    "publish": "absent there",
    "repair": "absent.whl -o out",
    "report": "absent -o out.html",
    "attest": "absent",
    "verify": "absent",
    "runpath for": "absent --at site-packages/a/",
    "runpath set": "$ORIGIN absent -o out",
    "runpath show": "absent",
    "selector merge": "absent absent2 -o out",
    "targets coherent": "absent.whl",
    "targets detect": "--root absent",
    "targets flags": "gfx9zz --tool cmake",
    "targets list": "gfx9zz",
    "targets runs-on": "gfx906 absent",
    "torch init": "--rocm 7.1 absent.whl",
    "torch requirements": "--rocm 7.1 gfx9zz",
    "torch runpath": "--tool absent",
    "wheel": "--spec absent",
}
"""Inputs that each command can't use."""

WITHOUT_INPUT = {"about", "cache info", "cache prune"}


def test_every_command_is_covered() -> None:
    assert {*ABSENT, *WITHOUT_INPUT} >= set(COMMANDS)


@pytest.mark.parametrize("words", ABSENT)
def test_unusable_input_produces_a_json_document_and_a_message(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    given, dashes, rest = ABSENT[words].partition("-- ")
    plain = run(*words.split(), *ABSENT[words].split())
    finished = run(*words.split(), *given.split(), "--json", "-q", *f"{dashes}{rest}".split())
    assert (finished.status, finished.stderr.splitlines()[-1:]) == (plain.status, plain.stderr.splitlines()[-1:])
    document = json.loads(finished.stdout)
    assert document["schema"] == "rocwheel.errors/1"
    assert document["exit_status"] == finished.status
    assert all(error["text"] in finished.stderr for error in document["errors"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_each_of_several_errors_has_its_own_fields(run: Run, tmp_path: Path) -> None:
    document = json.loads(run("runpath", "show", tmp_path / "a", tmp_path / "b", "--json").stdout)
    assert document["errors"] == [
        {
            "source": str(tmp_path / name),
            "found": "can't be read (No such file or directory)",
            "expected": "",
            "remedy": "Check whether it exists and is readable.",
            "text": f"{tmp_path / name}: can't be read (No such file or directory). "
            "Check whether it exists and is readable.",
        }
        for name in "ab"
    ]


@pytest.mark.parametrize("words", ["about --zzz --json", "hlep --json", "--json"])
def test_an_invalid_command_line_produces_a_json_document(run: Run, words: str) -> None:
    assert json.loads(run(*words.split()).stdout)["exit_status"] == 2


def test_json_after_a_double_dash_belongs_to_the_wrapped_command(run: Run) -> None:
    assert run("jax", "translate", "--", "cp", "--json").stdout == ""


def test_a_command_that_has_printed_its_document_prints_no_error_document(run: Run, tmp_path: Path) -> None:
    (tmp_path / "libcut.so").write_bytes(b"\x7fELF")
    finished = run("inspect", tmp_path / "libcut.so", "--json")
    assert (finished.status, json.loads(finished.stdout)["schema"]) == (2, "rocwheel.inspect/1")


def test_an_unexpected_os_error_is_reported_as_a_message(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise PermissionError(13, "Permission denied", "/proc/secret")

    monkeypatch.setattr("rocwheel.environment.about.read_about", fail)
    remedy = "Check the path, its permissions, and the free disk space."
    assert run("about") == (1, "", f"error: /proc/secret: can't be used (Permission denied). {remedy}\n")


@pytest.mark.parametrize("words", ["index circle", "artifacts archive circle -o out", "demo -d circle"])
def test_a_symlink_loop_is_reported(words: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "circle").symlink_to("circle")
    status, _, message = run(*words.split())
    assert status > 0
    assert re.match(r"error: \S*circle: ", message)
