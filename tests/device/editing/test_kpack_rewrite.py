"""Tests of compressing kpack archives."""

from __future__ import annotations

import random
import re
import zipfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects.target_id import TargetId
from rocwheel.binary.kpack.toc import Scheme
from rocwheel.device.editing.edit_tree import edit_tree
from rocwheel.device.editing.prune import Prune
from rocwheel.device.editing.rewrite import rewrite_device_code
from rocwheel.device.editing.rewrite_order import RewriteOrder
from rocwheel.device.editing.wheels.rewrite_wheel import rewrite_wheel
from rocwheel.distributions.formats.source_date import SourceDate
from rocwheel.foundation.errors import InputError
from tests.support.kpack_files import make_kpack
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

CODE = (FIXTURES / "elf/gfx906.co").read_bytes()
KERNELS = {("lib/a.so", index, "gfx906|gfx906:xnack-"): CODE + bytes([index]) for index in range(9)}
PLAIN = make_kpack(KERNELS, scheme=Scheme.NONE)
COMPRESS = Storage(compress=True)


def compress(folder: Path, data: bytes, storage: Storage = COMPRESS, **options: int) -> bytes:
    (folder / "x.kpack").write_bytes(data)
    rewrite_device_code(folder / "x.kpack", folder / "out.kpack", None, storage, **options)  # type: ignore[arg-type]
    return (folder / "out.kpack").read_bytes()


@pytest.mark.parametrize("jobs", [1, 3])
def test_code_is_compressed_at_the_level_of_new_archives(tmp_path: Path, jobs: int) -> None:
    assert compress(tmp_path, PLAIN, jobs=jobs) == make_kpack(KERNELS)


def test_archive_with_compressed_code_stays_as_it_is(tmp_path: Path) -> None:
    data = make_kpack(KERNELS, level=1)
    assert compress(tmp_path, data) == data


def test_level_that_is_given_is_that_of_all_code(tmp_path: Path) -> None:
    data = make_kpack(KERNELS, level=1)
    assert compress(tmp_path, data, Storage(compress=True, archive_level=19)) == make_kpack(KERNELS, level=19)


def test_levels_beyond_those_of_archives_are_their_last(tmp_path: Path) -> None:
    assert compress(tmp_path, PLAIN, Storage(compress=True, archive_level=22)) == make_kpack(KERNELS, level=19)


def test_report_counts_code_objects(tmp_path: Path) -> None:
    (tmp_path / "x.kpack").write_bytes(PLAIN)
    report = rewrite_device_code(tmp_path / "x.kpack", tmp_path / "y.kpack", None, COMPRESS)
    assert (report.is_archive, report.bundles, report.changed) == (True, 9, 9)
    assert (report.size_before, report.size_after < report.size_before) == (9 * len(CODE) + 9, True)


def test_archive_is_not_pruned_by_itself(tmp_path: Path) -> None:
    (tmp_path / "x.kpack").write_bytes(PLAIN)
    message = f"{tmp_path}/x.kpack: offset 0x0: a kpack archive; expected bundles: the code in an archive is for the"
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        rewrite_device_code(tmp_path / "x.kpack", tmp_path / "y", Prune((TargetId("gfx906"),)), Storage())
    assert not (tmp_path / "y").exists()


def test_archives_of_a_wheel_are_compressed_and_stored(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/.kpack/x_gfx906.kpack": PLAIN, "demo/data": b"x"})
    order = RewriteOrder(edit=None, storage=COMPRESS, jobs=2)
    report = rewrite_wheel(wheel, tmp_path / "out.whl", order, SourceDate())
    assert [(edited.path, edited.changed) for edited in report.edited] == [("demo/.kpack/x_gfx906.kpack", 9)]
    assert members(tmp_path / "out.whl")["demo/.kpack/x_gfx906.kpack"] == make_kpack(KERNELS)


def test_compressed_archive_of_a_wheel_is_not_deflated_again(tmp_path: Path) -> None:
    noise = {("a", 0, "gfx906"): random.Random(7).randbytes(300_000) + bytes(300_000)}
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/x_gfx906.kpack": make_kpack(noise, scheme=Scheme.NONE)})
    rewrite_wheel(wheel, tmp_path / "out.whl", RewriteOrder(edit=None, storage=COMPRESS), SourceDate())
    with zipfile.ZipFile(tmp_path / "out.whl") as archive:
        info = archive.getinfo("demo/x_gfx906.kpack")
    assert info.compress_type == zipfile.ZIP_STORED
    assert 300_000 < info.file_size < 310_000


def test_archives_for_other_targets_leave_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "x_gfx906.kpack").write_bytes(PLAIN)
    (folder / "x_gfx908.kpack").write_bytes(make_kpack({("lib/a.so", 0, "gfx908"): CODE}))
    edit_tree(folder, tmp_path / "out", Prune((TargetId("gfx906"),)), Storage())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["x_gfx906.kpack"]
