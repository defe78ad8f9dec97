"""Tests of `rocwheel.device.split.split_wheel`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.binary.code_objects import parse_target_id
from rocwheel.core.errors import RocwheelError
from rocwheel.device.split.join_wheels import join_wheels, resplit_wheels
from rocwheel.device.split.split_wheel import SplitWheels, split_wheel
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.wheels.sdist import SourceDate
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel, members, write_wheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocwheel.device.split.split_wheel import WheelSplit
    from rocwheel.wheels.writing import WheelPacker


LIBRARY = FIXTURES / "v22/libtwo.plain.so"
ORDER = WheelSplitOrder(choice=SplitChoice())
ENDING = "1.0-py3-none-linux_x86_64.whl"


def split(wheel: Path, output: Path, *targets: str, name: str = "") -> WheelSplit:
    choice = SplitChoice(keep=tuple(map(parse_target_id, targets)))
    return split_wheel(wheel, output, msgspec.structs.replace(ORDER, choice=choice, device_prefix=name), SourceDate())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path / "in", "demo", {"demo/libtwo.so": LIBRARY})


def test_obsolete_device_wheels_are_removed_and_named(wheel: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert split(wheel, out).replaced == ()
    report = split(wheel, out, "gfx906")
    assert names(out) == [f"demo-{ENDING}", f"demo_device_gfx906-{ENDING}"]
    assert [Path(path).name for path in report.removed] == [
        f"demo_device_gfx1030-{ENDING}",
        f"demo_device_gfx90a-{ENDING}",
    ]
    assert [Path(path).name for path in report.replaced] == [f"demo-{ENDING}", f"demo_device_gfx906-{ENDING}"]


def test_device_wheels_with_an_old_name_are_removed(wheel: Path, tmp_path: Path) -> None:
    split(wheel, tmp_path / "out", "gfx906")
    split(wheel, tmp_path / "out", "gfx906", name="amd-demo-device")
    assert names(tmp_path / "out") == [f"amd_demo_device_gfx906-{ENDING}", f"demo-{ENDING}"]


def test_wheels_of_other_splits_and_unrelated_wheels_are_kept(wheel: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    files: dict[str, Path | bytes] = {"demo/libtwo.so": LIBRARY}
    split(make_wheel(tmp_path / "other", "demo", files, tag="cp312-cp312-linux_x86_64"), out)
    split(make_wheel(tmp_path / "other", "demo", files, version="0.9"), out)
    make_wheel(out, "user", {"user/x.py": b""}, requires=("demo==1.0",))
    before = names(out)
    assert (split(wheel, out).removed, split(wheel, out, "gfx906").removed != ()) == ((), True)
    assert set(before) < set(names(out))


def test_a_dry_run_removes_nothing(wheel: Path, tmp_path: Path) -> None:
    split(wheel, tmp_path / "out")
    before = names(tmp_path / "out")
    choice = SplitChoice(keep=(parse_target_id("gfx906"),))
    order = msgspec.structs.replace(ORDER, choice=choice, dry_run=True)
    assert len(split_wheel(wheel, tmp_path / "out", order, SourceDate()).removed) == 2
    assert names(tmp_path / "out") == before


def test_unrelated_wheels_are_not_overwritten(wheel: Path, tmp_path: Path) -> None:
    other = make_wheel(tmp_path / "in", "other", {"other/libtwo.so": LIBRARY})
    split(other, tmp_path / "out", name="amd-device")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(RocwheelError) as raised:
        split(wheel, tmp_path / "out", name="amd-device")
    assert "would be overwritten by a device wheel; expected a device wheel of demo 1.0" in str(raised.value)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_an_unreadable_old_device_wheel_is_refused(wheel: Path, tmp_path: Path) -> None:
    split(wheel, tmp_path / "out", "gfx906")
    damaged = tmp_path / "out" / f"demo_device_gfx942-{ENDING}"
    damaged.write_bytes(b"PK")
    before = (tmp_path / "out" / f"demo-{ENDING}").stat().st_mtime_ns
    with pytest.raises(RocwheelError, match="gfx942"):
        split(wheel, tmp_path / "out", "gfx906")
    assert (tmp_path / "out" / f"demo-{ENDING}").stat().st_mtime_ns == before


def test_wheels_that_no_host_wheel_requires_are_kept(wheel: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    files: dict[str, Path | bytes] = {"kernels/x_gfx906.kpack": b"KPAK", "kernels/.device-gfx906": b""}
    foreign = make_wheel(out, "my-extra-kernels", files, requires=("demo==1.0",))
    before = foreign.read_bytes()
    for targets in ((), ("gfx906",)):
        report = split(wheel, out, *targets)
        assert str(foreign) not in (*report.removed, *report.replaced)
    assert foreign.read_bytes() == before


def test_a_split_interrupted_during_packing_leaves_no_empty_folder(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: SplitWheels, __: object, packer: WheelPacker, *___: object) -> None:
        packer.drain()
        assert (tmp_path / "new/out").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(SplitWheels, "_add_archives", interrupt)
    with pytest.raises(KeyboardInterrupt):
        split(wheel, tmp_path / "new/out")
    assert not (tmp_path / "new").exists()


def test_an_unrelated_wheel_with_the_same_name_is_not_overwritten(wheel: Path, tmp_path: Path) -> None:
    files: dict[str, Path | bytes] = {"demo/other.py": b""}
    other = make_wheel(tmp_path / "out", "demo", files, requires=('mock; extra == "device-mock"',))
    before = other.read_bytes()
    with pytest.raises(RocwheelError) as raised:
        split(wheel, tmp_path / "out")
    assert str(raised.value) == (
        f"{other}: would be overwritten by the host wheel; "
        "expected a host wheel from an earlier split of demo 1.0. "
        "Specify another folder, or move that wheel elsewhere."
    )
    assert (names(tmp_path / "out"), other.read_bytes()) == ([other.name], before)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[:-40], id="truncated"),
        pytest.param(lambda data: data[:4] + b"\2" + data[5:], id="another version"),
        pytest.param(lambda data: data[:8] + b"\xff" * 8 + data[16:], id="contents beyond the end"),
        pytest.param(None, id="gone"),
    ],
)
def test_a_damaged_archive_is_refused_by_name_and_nothing_is_written(
    tmp_path: Path, damage: Callable[[bytes], bytes] | None
) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/libtwo.so": FIXTURES / "v22/libtwo.plain.so"})
    report = split_wheel(wheel, tmp_path / "split", ORDER, SourceDate())
    host, device = Path(report.host), Path(report.devices[0].path)
    files = members(device)
    [info] = {name.partition("/")[0] for name in files if ".dist-info/" in name}
    [archive] = [name for name in files if name.endswith(".kpack")]
    data = files.pop(archive)
    files.pop(f"{info}/RECORD")
    write_wheel(device, info, files if damage is None else {**files, archive: damage(data)})
    # Without its archive, a library is known by its marker; a damaged one is named itself.
    named = "libtwo.so" if damage is None else Path(archive).name
    with pytest.raises(RocwheelError, match=named):
        join_wheels(host, [device], tmp_path / "out", SourceDate())
    if damage is not None:
        with pytest.raises(RocwheelError, match=named):
            resplit_wheels([host, device], tmp_path / "out", ORDER, SourceDate())
    assert not (tmp_path / "out").exists()
