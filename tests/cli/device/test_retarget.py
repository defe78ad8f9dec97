"""``rocwheel device retarget`` as a user runs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.device_commands import targets_of
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from tests.support.command_line import Run


from typing import TYPE_CHECKING

from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


def test_all_known_targets_are_added_on_request(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "out.hipfb"
    assert run("device", "retarget", "gfx1030=extended", FIXTURES / "v22/saxpy.hipfb", "-o", output)[0] == 0
    assert [target for target in targets_of(run, output)[0] if target.startswith("gfx103")] == [
        "gfx1030",
        "gfx1031",
        "gfx1032",
        "gfx1033",
        "gfx1034",
        "gfx1035",
        "gfx1036",
    ]


def test_bundles_that_cannot_be_offered_are_a_warning(run: Run, tmp_path: Path) -> None:
    source, output = tmp_path / "in.hipfb", tmp_path / "out.hipfb"
    source.write_bytes(b"".join((FIXTURES / f"v22/{name}.hipfb").read_bytes() for name in ("saxpy", "saxpy")))
    status, _, err = run("device", "prune", source, "-k", "gfx906,gfx942", "-o", tmp_path / "old.hipfb")
    source.write_bytes((FIXTURES / "v22/saxpy.hipfb").read_bytes() + (tmp_path / "old.hipfb").read_bytes())
    status, out, err = run("device", "retarget", "gfx1030=gfx1031", source, "--compress", "-o", output)
    assert (status, out.startswith(f"{output}: 3 of 3 bundles changed, ")) == (0, True)
    assert f"warning: {source}: 2 of 3 bundles have no code for gfx1030, and so none for gfx1031\n" in err


def test_bundles_of_a_wheel_without_code_to_offer_are_counted(run: Run, tmp_path: Path) -> None:
    files = {"demo/a.hipfb": FIXTURES / "v22/saxpy.ccob.hipfb", "demo/b.hipfb": FIXTURES / "v16/vadd.cov2.hipfb"}
    wheel = make_wheel(tmp_path / "in", "demo", files)
    done = run("device", "retarget", "gfx1030=gfx1031", wheel, "--level", "9", "-o", tmp_path)
    assert done.stdout == (f"{tmp_path / wheel.name}: device code of 1 file edited (93 bytes saved), 2 files copied\n")
    done = run("device", "retarget", "gfx1010=gfx1011", wheel, "-o", tmp_path)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {wheel}: no code for gfx1010 to offer to other GPUs; expected one of ")


def test_code_that_takes_more_room_than_before_is_said_to(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/a.hipfb": FIXTURES / "v22/saxpy.hipfb"})
    done = run("device", "retarget", "gfx1030=gfx1031", wheel, "-o", tmp_path)
    assert done.stdout == (f"{tmp_path / wheel.name}: device code of 1 file edited (4.1 kB more), 1 file copied\n")


def test_a_member_that_is_named_for_its_target_stays_and_is_told(run: Run, tmp_path: Path) -> None:
    files = {"demo/a.hipfb": FIXTURES / "v22/saxpy.ccob.hipfb", "demo/k_gfx1030.hsaco": FIXTURES / "v22/saxpy.hipfb"}
    wheel = make_wheel(tmp_path / "in", "demo", files)
    done = run("device", "retarget", "gfx1030=gfx1031", wheel, "--level", "9", "-o", tmp_path)
    assert (done.status, "device code of 1 file edited (93 bytes saved), 2 files copied" in done.stdout) == (0, True)
    assert "demo: 1 file for gfx1030 is offered to no other GPU: libraries look them up by name" in done.stderr
    assert members(tmp_path / wheel.name)["demo/k_gfx1030.hsaco"] == (FIXTURES / "v22/saxpy.hipfb").read_bytes()
