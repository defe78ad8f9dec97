"""Tests of `rocwheel.repair.write`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rocwheel.binary.bundles import sequence
from rocwheel.core.errors import InputError
from rocwheel.core.reading import ChangedFileError
from rocwheel.repair import write
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.repair_plan import plan_repairs
from rocwheel.repair.write import RepairJob
from rocwheel.wheels import zip_reader
from tests.repair.wheels import with_members
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel, members


@pytest.mark.parametrize("is_folder", [False, True], ids=["named", "in a folder"])
def test_a_wheel_that_changed_since_it_was_read_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_folder: bool
) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/__init__.py": b""}, tag="py3-none-any")

    def plan_then_write(*args: Any) -> Any:
        plans = plan_repairs(*args)
        make_wheel(tmp_path / "dist", "demo", {"demo/__init__.py": b"more = 1"}, tag="py3-none-any")
        return plans

    monkeypatch.setattr(write, "plan_repairs", plan_then_write)
    given = (wheel.parent if is_folder else wheel,)
    with pytest.raises(ChangedFileError):
        RepairJob(given, (), tmp_path / "out", RepairOptions()).run()
    assert list((tmp_path / "out").iterdir()) == []


def test_a_dangling_wheel_link_does_not_stop_the_repair_of_other_wheels(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/__init__.py": b""}, tag="py3-none-any")
    (wheel.parent / "gone-1.0-py3-none-any.whl").symlink_to("nowhere")
    problems: list[Any] = []
    done = RepairJob((wheel.parent,), (), tmp_path / "out", RepairOptions()).run(problems=problems)
    assert done.written == (str(tmp_path / "out" / wheel.name),)
    assert [str(problem).partition(":")[0] for problem in problems] == [f"{wheel.parent}/gone-1.0-py3-none-any.whl"]


def test_a_folder_named_like_a_wheel_does_not_stop_the_repair_of_wheels(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/__init__.py": b""}, tag="py3-none-any")
    (wheel.parent / "x.whl").mkdir()
    (wheel.parent / "x.whl" / wheel.name).write_bytes(wheel.read_bytes())
    problems: list[Any] = []
    done = RepairJob((wheel.parent,), (), tmp_path / "out", RepairOptions()).run(problems=problems)
    assert done.written == (str(tmp_path / "out" / wheel.name),)
    assert [str(problem) for problem in problems] == [
        f"{wheel.parent}/x.whl: is a folder; expected a wheel. Rename the folder, or move it."
    ]


def test_an_output_folder_named_like_a_wheel_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/__init__.py": b""}, tag="py3-none-any")
    with pytest.raises(
        InputError, match=r"x\.whl: is named like a wheel; expected a folder for the repaired wheels\. C"
    ):
        RepairJob((wheel.parent,), (), wheel.parent / "x.whl", RepairOptions()).run()
    assert list(wheel.parent.iterdir()) == [wheel]


def test_every_byte_of_a_wheel_is_inflated_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sdk_wheel: Path, plugin_wheel: Path
) -> None:
    libraries = {name: data for name, data in members(plugin_wheel).items() if name.endswith(".so")}
    large: dict[str, bytes | None] = {name: data + bytes(2 << 20) for name, data in libraries.items()}
    large["plugin/data.bin"] = bytes(3 << 20)
    wheel = with_members(plugin_wheel, tmp_path / "large", large)
    inflated: list[str] = []
    whole = zip_reader.iter_member

    def counted(member: zip_reader.ZipMember, **options: Any) -> Any:
        if member.size >= 2 << 20:
            inflated.append(member.name)
        return whole(member, **options)

    monkeypatch.setattr(zip_reader, "iter_member", counted)
    done = RepairJob((wheel,), (sdk_wheel,), tmp_path / "out", RepairOptions()).run()
    assert len(done.wheels[0].edits) > 0
    assert sorted(inflated) == sorted(large)
    assert members(Path(done.written[0]))["plugin/data.bin"] == bytes(3 << 20)


def test_device_code_is_not_decompressed_during_a_repair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fat = (FIXTURES / "edge/two.ccob.fatbin").read_bytes()
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/k.hipfb": fat}, tag="py3-none-any")
    monkeypatch.setattr(sequence, "iter_decompressed", None)
    assert RepairJob((wheel,), (), None, RepairOptions()).run().wheels[0].unmended == ()
