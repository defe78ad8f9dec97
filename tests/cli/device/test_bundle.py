"""``rocwheel device bundle`` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


@pytest.fixture
def codes(run: Run, tmp_path: Path) -> list[Path]:
    """Return extracted code objects."""
    run("device", "extract", FIXTURES / "v22/saxpy.hipfb", "-t", "gfx906,gfx1030", "-d", tmp_path / "code")
    return sorted((tmp_path / "code").iterdir(), reverse=True)


def test_code_objects_become_a_bundle(run: Run, tmp_path: Path, codes: list[Path]) -> None:
    output = tmp_path / "x.hipfb"
    assert run("device", "bundle", *codes, "-o", output) == (
        0,
        f"{output}: plain, 11.8 kB, for gfx1030, gfx906\n",
        "",
    )
    assert "host-x86_64-unknown-linux-- (host)" in run("device", "list", "-v", output).stdout


def test_a_compressed_bundle_is_told_to_machines(run: Run, tmp_path: Path, codes: list[Path]) -> None:
    output = tmp_path / "x.hipfb"
    done = run("device", "bundle", *codes, "-o", output, "--compress", "--header-version", "3", "--json")
    document = json.loads(done.stdout)
    assert document["size"] == output.stat().st_size
    del document["size"]
    assert document == {
        "schema": "rocwheel.device-bundle/1",
        "path": str(output),
        "targets": ["gfx1030", "gfx906"],
        "code_object_version": 6,
        "version": 3,
        "raw_size": 11800,
    }
    assert output.read_bytes()[:6] == b"CCOB\3\0"


def test_what_is_wrong_is_said_and_nothing_is_written(run: Run, tmp_path: Path, codes: list[Path]) -> None:
    status, out, err = run("device", "bundle", *codes, codes[0], "/dev/null", "-o", tmp_path / "x.hipfb")
    assert (status, out) == (2, "")
    assert err == "error: /dev/null: is not a regular file; expected a file or a folder\n"
    status, out, err = run("device", "bundle", *codes, codes[0], "-o", tmp_path / "x.hipfb")
    assert (status, out) == (2, "")
    assert err == (f"error: {codes[0]}: a code object for gfx906, as {codes[0]} is; expected one for each target\n")
    assert not (tmp_path / "x.hipfb").exists()


def test_a_code_object_is_never_written_over(run: Run, tmp_path: Path, codes: list[Path]) -> None:
    before = codes[1].read_bytes()
    link = tmp_path / "link.co"
    link.symlink_to(codes[1])
    for output in (codes[1], link):
        status, out, err = run("device", "bundle", *codes, "-o", output)
        assert (status, out) == (2, "")
        expected = "a file that is none of the code objects. Name another."
        assert err == f"error: {output}: is {codes[1]}, which goes into the bundle; expected {expected}\n"
        assert codes[1].read_bytes() == before
