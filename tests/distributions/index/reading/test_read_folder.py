"""Everything that is wrong with the files of a folder is reported together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.distributions.index.write_index import write_index
from rocwheel.foundation.errors import ProblemsError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.distributions.index.conftest import AddWheel


@pytest.fixture
def output(dist_dir: Path) -> Path:
    return dist_dir.parent / "simple"


def test_everything_wrong_is_reported_at_once_and_nothing_written(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    add_wheel("good")
    add_wheel("mismatch", name_inside="other")
    add_wheel("twice", "1.0")
    add_wheel("twice", "1.0", filename="Twice-1.0.0-py3-none-any.whl")
    (dist_dir / "broken-1.0-py3-none-any.whl").write_bytes(b"PK")
    (dist_dir / "thing.whl").write_bytes(b"")
    (dist_dir / "dangling-1.0-py3-none-any.whl").symlink_to("gone")
    with pytest.raises(ProblemsError) as caught:
        write_index(dist_dir, output)
    assert str(caught.value) == (
        f"{dist_dir}: 5 problems\n"
        f"  {dist_dir}/broken-1.0-py3-none-any.whl: a damaged archive (File is not a zip file). "
        "Build or download it again.\n"
        f"  {dist_dir}/dangling-1.0-py3-none-any.whl: can't be read (No such file or directory). "
        "Check its permissions.\n"
        f"  {dist_dir}/mismatch-1.0-py3-none-any.whl: its metadata names the project 'other'; "
        "expected 'mismatch' as in the file name\n"
        f"  {dist_dir}/thing.whl: not the name of a distribution; "
        "expected NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl or NAME-VERSION.tar.gz. Rename it, or remove it.\n"
        f"  {dist_dir}/twice-1.0-py3-none-any.whl: the same distribution as Twice-1.0.0-py3-none-any.whl under "
        "another name. Remove one of the two."
    )
    assert not output.exists()
    assert not list(dist_dir.glob("*.metadata"))


def test_a_wheel_with_a_damaged_member_is_reported_with_all_others(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    paths = [add_wheel(name) for name in "abc"]
    for path in paths[:2]:
        data = bytearray(path.read_bytes())
        data[data.index(b".py") + 5] ^= 0xFF
        path.write_bytes(data)
    with pytest.raises(ProblemsError) as caught:
        write_index(dist_dir, output)
    assert [str(problem).partition(": ")[0] for problem in caught.value.problems] == [
        f"{dist_dir}/a-1.0-py3-none-any.whl!a.py",
        f"{dist_dir}/b-1.0-py3-none-any.whl!b.py",
    ]
    assert not output.exists()
