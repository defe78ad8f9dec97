"""``rocwheel verify`` as its users call it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from rocwheel.distributions.build_manifest.place import write_manifest
from tests.distributions.build_manifest.manifests import manifest_of
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """Return the folder of a build with one wheel."""
    wheel = make_wheel(tmp_path / "out/dist", "demo", {"a.py": b"1\n"})
    write_manifest(tmp_path / "out", manifest_of({f"dist/{wheel.name}": wheel.read_bytes()}))
    return tmp_path / "out"


def test_what_is_good_is_said_in_a_line_each(run: Run, build: Path) -> None:
    (wheel,) = (build / "dist").iterdir()
    done = run("verify", build, build / "rocwheel-build.json", build / "dist", wheel)
    manifest = f"{build}/rocwheel-build.json: build, 1 file (1.1 kB): good"
    lines = done.stdout.splitlines()
    assert (done.status, done.stderr, lines[:2]) == (0, "", [manifest, manifest])
    assert [line.rpartition("): ")[2] for line in lines[2:]] == ["good", "good"]
    assert lines[2] == lines[3]
    assert lines[2].startswith(f"{wheel}: wheel, 5 files (")


def test_faults_are_named_and_end_with_1(run: Run, build: Path) -> None:
    (build / "dist/more.whl").touch()
    done = run("verify", build, "--quiet")
    text = f"extra {build}/dist/more.whl: is not in the manifest; expected files of this build alone\n"
    assert (done.status, done.stdout, done.stderr) == (1, text, "")


def test_faults_as_json(run: Run, build: Path) -> None:
    (build / "dist/more.whl").touch()
    done = run("verify", build, "--json")
    document = json.loads(done.stdout)
    [verified] = document["verified"]
    assert (done.status, document["schema"]) == (1, "rocwheel.verify/1")
    assert (verified["path"], verified["kind"], verified["files"]) == (f"{build}/rocwheel-build.json", "build", 1)
    assert verified["faults"] == [
        {
            "kind": "extra",
            "place": f"{build}/dist/more.whl",
            "found": "is not in the manifest",
            "expected": "files of this build alone",
        }
    ]


def test_what_can_t_be_verified_is_named_after_all_others(run: Run, build: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.json").write_text("no")
    (tmp_path / "rocm-1.tar.gz").touch()
    os.mkfifo(tmp_path / "pipe")
    names = ["empty", "text.json", "rocm-1.tar.gz", "pipe", "absent"]
    done = run("verify", *(tmp_path / name for name in names), build)
    assert (done.status, done.stdout.endswith(": good\n")) == (2, True)
    assert "What can't be verified: 5 problems" in done.stderr
    for name, found in zip(
        names,
        (
            "holds nothing that can be verified",
            "is not JSON",
            "has no list of its files with hashes",
            "can't be read (it is not a regular file)",
            "can't be read (No such file or directory)",
        ),
        strict=True,
    ):
        assert f"{tmp_path / name}: {found}" in done.stderr


def test_control_characters_of_names_do_not_reach_the_terminal(run: Run, build: Path) -> None:
    (build / "dist/\x1b[31mred\n.whl").touch()
    done = run("verify", build, "-q")
    assert done.status == 1
    assert "\x1b" not in done.stdout


def test_names_that_are_not_utf8_are_told(run: Run, build: Path) -> None:
    (build / "dist/\udcff.whl").touch()
    assert json.loads(run("verify", build, "--json").stdout)["verified"][0]["faults"][0]["place"].endswith("\udcff.whl")
    assert run("verify", build).status == 1
