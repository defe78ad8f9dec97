"""Tests of `rocwheel.device.edit_wheel`."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.device.edit_bundles import Prune
from rocwheel.device.edit_file import RewriteOrder, rewrite_device_code
from rocwheel.device.edit_wheel import WheelRewriteReport, WheelTargets, rewrite_wheel
from rocwheel.device.extract import extract_code
from rocwheel.device.retarget import Retarget
from rocwheel.targets.retarget_pairs import TargetPair
from rocwheel.wheels.sdist import SourceDate
from tests.support.bills import pedigree, record_digest, with_bill
from tests.support.bundles import bundle_of
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel, members, write_wheel

if TYPE_CHECKING:
    from rocwheel.device.edit_bundles import BundleEdit


GFX906, GFX942, GFX1030, GFX1031 = map(TargetId, ("gfx906", "gfx942", "gfx1030", "gfx1031"))
WHEEL = Path("demo-1.0-py3-none-any.whl")


def declaration(*names: str, **more: object) -> bytes:
    return json.dumps({"schema": "rocwheel.rocm-targets/1", "rocm_targets": names, **more}).encode()


def declared(data: bytes) -> list[str]:
    return list(json.loads(data)["rocm_targets"])


def test_a_declaration_with_unchanged_targets_keeps_its_bytes() -> None:
    data = declaration("gfx1030", "gfx906")
    targets = WheelTargets({GFX906, GFX1030}, {GFX906, GFX1030})
    assert targets.redeclare(data, None, source="demo") is data


def test_the_declaration_lists_the_targets_after_the_edit() -> None:
    targets = WheelTargets({GFX906, GFX1030}, {GFX1030, GFX1031})
    assert declared(targets.redeclare(declaration("gfx906", "gfx1030"), None, source="demo")) == ["gfx1030", "gfx1031"]


@pytest.mark.parametrize(
    ("keep", "expected"),
    [(None, ["gfx906", "gfx942"]), ((GFX906,), ["gfx906"]), ((GFX906, GFX942), ["gfx906", "gfx942"])],
    ids=["all are kept", "others are kept", "it is kept"],
)
def test_a_declared_target_without_code_is_kept_if_it_is_selected(
    keep: tuple[TargetId, ...] | None, expected: list[str]
) -> None:
    targets = WheelTargets({GFX906}, {GFX906})
    assert declared(targets.redeclare(declaration("gfx906", "gfx942"), keep, source="demo")) == expected


def test_a_selected_target_without_features_keeps_variants_of_its_processor() -> None:
    variant = parse_target_id("gfx90a:xnack+", source="")
    data = declaration("gfx90a:xnack+", "gfx942")
    assert declared(WheelTargets().redeclare(data, (TargetId("gfx90a"),), source="demo")) == [str(variant)]


def test_an_old_coherence_record_is_removed() -> None:
    record = {"packages": ["demo"], "common": ["gfx906"], "gaps": []}
    data = declaration("gfx906", "gfx942", coherence=record)
    assert "coherence" not in json.loads(WheelTargets({GFX906, GFX942}, {GFX906}).redeclare(data, None, source="demo"))


def test_a_malformed_declaration_is_refused() -> None:
    with pytest.raises(InputError, match=r"^demo/rocm_targets\.json: is malformed "):
        WheelTargets().redeclare(b"{", None, source="demo/rocm_targets.json")


def test_removing_all_code_of_a_wheel_is_refused_with_its_targets() -> None:
    expected = (
        "demo-1.0-py3-none-any.whl: has no code for any of the targets to keep; expected code for one of gfx942. "
        "The wheel has code for gfx906, gfx1030."
    )
    with pytest.raises(InputError) as caught:
        WheelTargets({GFX1030, GFX906}, set()).require_any(WHEEL, (GFX942,))
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "targets", [WheelTargets(), WheelTargets({GFX906, GFX942}, {GFX942})], ids=["never had any", "some is left"]
)
def test_a_wheel_that_keeps_some_code_is_accepted(targets: WheelTargets) -> None:
    targets.require_any(WHEEL, (GFX942,))


PLAIN = FIXTURES / "v22/libtwo.plain.so"
COMPRESS = Storage(compress=True)
KEEP = Prune((TargetId("gfx906"),))


def rewrite(
    wheel: Path, output: Path, edit: BundleEdit | None = None, storage: Storage = COMPRESS, *, trim: bool = False
) -> WheelRewriteReport:
    order = RewriteOrder(edit=edit, storage=storage, trim=trim, jobs=2)
    return rewrite_wheel(wheel, output, order, SourceDate())


def edited_file(folder: Path, edit: BundleEdit | None, storage: Storage, *, trim: bool = False) -> bytes:
    """Return what the library becomes when it is edited by itself."""
    rewrite_device_code(PLAIN, folder / "alone.so", edit, storage, trim=trim)
    return (folder / "alone.so").read_bytes()


def check_record(wheel: Path) -> None:
    """Compare RECORD with the members, in the standard library's words."""
    contents = members(wheel)
    [name] = [name for name in contents if name.endswith(".dist-info/RECORD")]
    rows = {path: (digest, size) for path, digest, size in csv.reader(io.StringIO(contents[name].decode()))}
    assert rows.pop(name) == ("", "")
    digests = {
        path: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        for path, data in contents.items()
        if path != name
    }
    assert rows == {path: (f"sha256={digest}", str(len(contents[path]))) for path, digest in digests.items()}


@pytest.mark.parametrize(
    ("edit", "storage", "trim"),
    [
        (None, COMPRESS, False),
        (None, COMPRESS, True),
        (KEEP, Storage(), False),
        (KEEP, COMPRESS, True),
        (Retarget((TargetPair(parse_target_id("gfx1030"), parse_target_id("gfx1031")),)), COMPRESS, False),
    ],
    ids=["compress", "compress and trim", "prune", "prune and trim", "retarget"],
)
def test_a_library_in_a_wheel_is_edited_like_a_separate_file(
    tmp_path: Path, edit: BundleEdit | None, storage: Storage, *, trim: bool
) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/__init__.py": b"x = 1\n", "demo/lib/libtwo.so": PLAIN})
    output = tmp_path / wheel.name
    report = rewrite(wheel, output, edit, storage, trim=trim)
    new, old = members(output), members(wheel)
    assert new.pop("demo/lib/libtwo.so") == edited_file(tmp_path, edit, storage, trim=trim)
    assert {name: data for name, data in new.items() if "RECORD" not in name} == {
        name: data for name, data in old.items() if "RECORD" not in name and name != "demo/lib/libtwo.so"
    }
    check_record(output)
    assert ([file.path for file in report.edited], report.dropped, report.copied) == (["demo/lib/libtwo.so"], (), 2)


@pytest.mark.parametrize(
    ("edit", "notes"),
    [
        (KEEP, "prune: changed the device code of demo/libtwo.so; left out demo/Kernels_gfx942.hsaco"),
        (None, "compress: changed the device code of demo/libtwo.so"),
    ],
    ids=["prune", "compress"],
)
def test_the_bill_of_materials_describes_the_edit(tmp_path: Path, edit: BundleEdit | None, notes: str) -> None:
    files = {"demo/libtwo.so": PLAIN.read_bytes(), "demo/Kernels_gfx942.hsaco": b"for another", **with_bill("demo")}
    wheel = make_wheel(tmp_path / "in", "demo", files)
    output = tmp_path / wheel.name
    rewrite(wheel, output, edit)
    assert pedigree(output) == (f"rocwheel device {notes}", record_digest(wheel))
    check_record(output)


def test_permissions_are_preserved_except_setuid_and_write_permission_for_others(tmp_path: Path) -> None:
    contents = {"demo/a.so": PLAIN.read_bytes(), "demo/tool": b"#!/bin/sh\n", "demo-1.0.dist-info/METADATA": b""}
    contents["demo-1.0.dist-info/WHEEL"] = b"Wheel-Version: 1.0\n"
    modes = {"demo/a.so": 0o104711, "demo/tool": 0o100777}
    wheel = write_wheel(tmp_path / "demo-1.0-py3-none-any.whl", "demo-1.0.dist-info", contents, modes)
    (tmp_path / "out").mkdir()
    rewrite(wheel, tmp_path / "out" / wheel.name)
    with zipfile.ZipFile(tmp_path / "out" / wheel.name) as archive:
        found = {info.filename: oct(info.external_attr >> 16 & 0o7777) for info in archive.infolist()}
    assert (found["demo/a.so"], found["demo/tool"]) == ("0o711", "0o755")


def test_pruning_removes_only_files_for_other_targets(tmp_path: Path) -> None:
    files = {
        "demo/lib/libtwo.so": PLAIN.read_bytes(),
        "demo/lib/library/Kernels.so-000-gfx942.hsaco": b"for another",
        "demo/lib/library/TensileLibrary_gfx906.dat": b"for this one",
        "demo/lib/library/others.co": bundle_of("gfx1030", "gfx942"),
        "demo/lib/library/both.co": bundle_of("gfx906", "gfx942"),
        "demo/include/gfx942.h": b"",
    }
    wheel = make_wheel(tmp_path / "in", "demo", files)
    output = tmp_path / wheel.name
    report = rewrite(wheel, output, KEEP, Storage())
    assert report.dropped == ("demo/lib/library/Kernels.so-000-gfx942.hsaco", "demo/lib/library/others.co")
    assert [file.path for file in report.edited] == ["demo/lib/libtwo.so", "demo/lib/library/both.co"]
    assert sorted(set(members(wheel)) - set(members(output))) == sorted(report.dropped)
    check_record(output)


def test_code_objects_are_kept_and_untrimmable_files_are_edited_in_place(tmp_path: Path) -> None:
    [extracted] = extract_code(FIXTURES / "v22/saxpy.hipfb", tmp_path / "code", (TargetId("gfx906"),))
    code = Path(extracted.path).read_bytes()
    built = (FIXTURES / "v19/vadd.plain.o").read_bytes()
    headers = (f"{name:<48}{size:<10}`\n".encode() for name, size in (("__.SYMDEF", 0), ("x.o/", len(built))))
    bsd = b"!<arch>\n" + b"".join(headers) + built
    files: dict[str, Path | bytes] = {"demo/x.co": code, "demo/x.o": built, "demo/a.so": PLAIN, "demo/bsd.a": bsd}
    wheel = make_wheel(tmp_path / "in", "demo", files)
    output = tmp_path / wheel.name
    report = rewrite(wheel, output, trim=True)
    assert members(output)["demo/x.co"] == code
    assert [(file.path, file.trimmed) for file in report.edited] == [
        ("demo/x.o", 12312),
        ("demo/a.so", 28672),
        ("demo/bsd.a", 0),
    ]
    [warning] = report.warnings
    assert warning.startswith(f"not trimmed: {wheel}!demo/bsd.a: ")


def test_a_signature_of_the_old_record_is_dropped_with_a_warning(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/a.so": PLAIN, "demo-1.0.dist-info/RECORD.jws": b"{}"})
    report = rewrite(wheel, tmp_path / wheel.name)
    assert report.warnings == (
        f"{wheel}!demo-1.0.dist-info/RECORD.jws: left out, because it signs the old wheel's RECORD",
    )
    assert "demo-1.0.dist-info/RECORD.jws" not in members(tmp_path / wheel.name)


def test_a_library_that_needs_no_change_is_copied(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/a.so": FIXTURES / "v22/libtwo.ccob.so"})
    report = rewrite(wheel, tmp_path / wheel.name)
    assert (report.edited, report.copied) == ((), 2)
    assert members(tmp_path / wheel.name)["demo/a.so"] == (FIXTURES / "v22/libtwo.ccob.so").read_bytes()


def test_a_wheel_can_be_edited_in_place(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/a.so": PLAIN})
    rewrite(wheel, wheel)
    assert members(wheel)["demo/a.so"] == edited_file(tmp_path, None, COMPRESS)
    check_record(wheel)


def test_the_output_does_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {f"demo/{number}.so": PLAIN for number in range(4)})
    for jobs in (1, 4):
        order = RewriteOrder(edit=None, storage=COMPRESS, jobs=jobs)
        rewrite_wheel(wheel, tmp_path / f"{jobs}.whl", order, SourceDate())
    assert (tmp_path / "1.whl").read_bytes() == (tmp_path / "4.whl").read_bytes()


def test_every_uneditable_file_is_reported_and_nothing_is_written(tmp_path: Path) -> None:
    damaged = PLAIN.read_bytes()[:9000]
    files = {"demo/a.so": PLAIN.read_bytes(), "demo/b.so": damaged, "demo/c.hipfb": bundle_of("gfx942", "gfx1030")[:50]}
    wheel = make_wheel(tmp_path / "in", "demo", files)
    with pytest.raises(ProblemsError) as caught:
        rewrite(wheel, tmp_path / wheel.name)
    assert [str(problem).partition(": ")[0] for problem in caught.value.problems] == [
        f"{wheel}!demo/b.so",
        f"{wheel}!demo/c.hipfb",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_wheel_without_device_code_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/__init__.py": b""})
    with pytest.raises(InputError, match=r"no device code; expected a wheel with device code"):
        rewrite(wheel, tmp_path / wheel.name)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.slow
def test_a_killed_run_leaves_no_wheel_and_the_next_run_removes_its_leftovers(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/a.so": PLAIN})
    script = f"""
import os, signal
from pathlib import Path
from rocwheel.binary.bundles.storage import Storage
from rocwheel.device.edit_file import RewriteOrder
from rocwheel.device.edit_wheel import rewrite_wheel
from rocwheel.wheels.sdist import SourceDate
from rocwheel.wheels.writing import WheelWriter
WheelWriter.close = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
order = RewriteOrder(edit=None, storage=Storage(compress=True))
rewrite_wheel(Path({str(wheel)!r}), Path({str(tmp_path / wheel.name)!r}), order, SourceDate())
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -signal.SIGKILL
    [trace] = [path.name for path in tmp_path.iterdir() if path.name != "in"]
    assert trace.startswith(f".{wheel.name}.")
    rewrite(wheel, tmp_path / wheel.name)
    assert sorted(path.name for path in tmp_path.iterdir()) == [wheel.name, "in"]
    check_record(tmp_path / wheel.name)


@pytest.mark.parametrize(
    "edit", [None, KEEP, Retarget((TargetPair(parse_target_id("gfx1030"), parse_target_id("gfx1031")),))]
)
def test_a_wheel_with_a_path_outside_the_wheel_is_refused_and_nothing_is_written(
    tmp_path: Path, edit: BundleEdit | None
) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": PLAIN.read_bytes(), "../evil.so": b""})
    message = r"!\.\./evil\.so: a path that points outside the wheel; expected a path inside the environment\. Build"
    with pytest.raises(InputError, match=message):
        rewrite(wheel, tmp_path / "edited.whl", edit)
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]
