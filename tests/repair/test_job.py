"""A whole repair, while somebody else writes to the wheels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.foundation.files.file_stamp import ChangedFileError
from rocwheel.repair import job
from rocwheel.repair.job import RepairJob
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.plan_wheels import plan_repairs
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("is_folder", [False, True], ids=["named", "in a folder"])
def test_a_wheel_that_has_changed_since_it_was_read_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_folder: bool
) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/__init__.py": b""}, tag="py3-none-any")

    def plan_then_write(*args: Any) -> Any:
        plans = plan_repairs(*args)
        make_wheel(tmp_path / "dist", "demo", {"demo/__init__.py": b"more = 1"}, tag="py3-none-any")
        return plans

    monkeypatch.setattr(job, "plan_repairs", plan_then_write)
    given = (wheel.parent if is_folder else wheel,)
    with pytest.raises(ChangedFileError):
        RepairJob(given, (), tmp_path / "out", RepairOptions()).run()
    assert list((tmp_path / "out").iterdir()) == []


def test_a_wheel_in_a_folder_that_leads_nowhere_does_not_keep_the_others_from_being_repaired(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/__init__.py": b""}, tag="py3-none-any")
    (wheel.parent / "gone-1.0-py3-none-any.whl").symlink_to("nowhere")
    problems: list[Any] = []
    done = RepairJob((wheel.parent,), (), tmp_path / "out", RepairOptions()).run(problems=problems)
    assert done.written == (str(tmp_path / "out" / wheel.name),)
    assert [str(problem).partition(":")[0] for problem in problems] == [f"{wheel.parent}/gone-1.0-py3-none-any.whl"]
