"""Environments compared with the RECORD of their packages."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.progress import SILENT
from rocwheel.environment.read_tree import find_site_packages
from rocwheel.verify.environments import verify_environment
from rocwheel.verify.files import Fault, Verified
from rocwheel.verify.verify import verify
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def verified(folder: Path) -> Verified:
    site = find_site_packages(folder)
    assert site is not None
    with ThreadPoolExecutor(2) as executor:
        return verify_environment(folder, site, executor, SILENT)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return site-packages with a small package that pip has installed, its bytecode included."""
    wheel = make_wheel(tmp_path, "demo", {"demo/a.py": b"a = 1\n", "demo/b.py": b"b = 1\n"}, tag="py3-none-any")
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, str(wheel)], check=True)
    assert list(site.rglob("*.pyc"))
    return site


def test_an_environment_made_by_pip_has_no_faults(site: Path) -> None:
    found = verified(site)
    assert (found.kind, found.faults, found.unchecked) == ("environment", (), 2)
    assert found.files > 6


def test_changed_and_missing_files_are_reported(site: Path) -> None:
    (site / "demo/a.py").write_bytes(b"a = 2\n")
    (site / "demo/b.py").unlink()
    (site / "demo/extra.py").touch()  # of nobody, which no RECORD speaks of
    assert sorted(verified(site).faults, key=lambda fault: fault.place) == [
        Fault(
            "changed",
            f"{site}/demo/a.py",
            f"has the sha256 {hashlib.sha256(b'a = 2' + bytes([10])).hexdigest()}",
            hashlib.sha256(b"a = 1\n").hexdigest(),
        ),
        Fault("missing", f"{site}/demo/b.py", "is missing", "a file"),
    ]


def test_changed_bytecode_is_not_a_fault(site: Path) -> None:
    for path in site.rglob("*.pyc"):
        path.write_bytes(b"changed")
    assert verified(site).faults == ()


def test_rows_that_point_outside_the_environment_are_not_followed(site: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    record = next(site.glob("*.dist-info/RECORD"))
    record.write_text(record.read_text() + "../secret,sha256=AAAA,4\n/etc/hostname,sha256=AAAA,4\n")
    found = verified(site)
    assert (found.faults, found.unchecked) == ((), 4)


def test_scripts_in_a_virtual_environment_are_compared(tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    assert verified(folder).faults == ()
    (folder / "bin/pip").write_text("#!/bin/sh\n")
    [fault] = verified(folder).faults
    assert (fault.kind, fault.place) == ("changed", f"{folder}/bin/pip")


def test_a_missing_or_damaged_record_is_reported(site: Path) -> None:
    record = next(site.glob("*.dist-info/RECORD"))
    record.unlink()
    assert [fault.text for fault in verified(site).faults] == [f"{record}: is missing; expected a file"]
    record.mkdir()
    [fault] = verified(site).faults
    assert (fault.kind, fault.found) == ("damaged", "can't be read (Is a directory)")


def test_a_file_listed_by_two_packages_is_compared_with_both_rows(site: Path) -> None:
    other = site / "other-1.dist-info"
    other.mkdir()
    hash_of_nothing = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
    (other / "RECORD").write_text(f"demo/a.py,sha256={hash_of_nothing},\nother-1.dist-info/RECORD,,\n")
    [fault] = verified(site).faults
    assert (fault.kind, fault.place) == ("changed", f"{site}/demo/a.py")
    assert fault.expected == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize(("name", "kinds", "unchecked"), [("b.py", ["unlisted"], 2), ("c.txt", [], 3)])
def test_a_row_without_a_hash_is_a_fault_only_for_code(site: Path, name: str, kinds: list[str], unchecked: int) -> None:
    before = verified(site).files
    (site / "demo" / name).write_text("changed")
    record = next(site.glob("*.dist-info/RECORD"))
    lines = [line for line in record.read_text().splitlines() if "demo/b.py" not in line]
    record.write_text("\n".join([*lines, f"demo/{name},,", ""]))
    found = verified(site)
    assert [fault.kind for fault in found.faults] == kinds
    assert (found.files, found.unchecked) == (before - (not kinds), unchecked)


def test_every_site_packages_folder_of_an_environment_is_compared_once(tmp_path: Path) -> None:
    for name, text in (("lib/python3.11", "good"), ("lib64/python3.12", "bad")):
        info = tmp_path / name / "site-packages/demo-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(text)
        digest = "dw5gdiTWiSZcpsRIhNCAfZsFTSPEc8EGxyvp3gi3N2w"
        (info / "RECORD").write_text(f"demo-1.dist-info/METADATA,sha256={digest},\ndemo-1.dist-info/RECORD,,\n")
    (tmp_path / "lib32").symlink_to("lib")
    with ThreadPoolExecutor(1) as executor:
        found = list(verify(tmp_path, executor))
    assert [(one.path, [fault.kind for fault in one.faults]) for one in found] == [
        (f"{tmp_path}/lib/python3.11/site-packages", []),
        (f"{tmp_path}/lib64/python3.12/site-packages", ["changed"]),
    ]


def install(site: Path, name: str, files: dict[str, bytes], rows: str = "") -> None:
    """Write the files of a package, and a RECORD of them with more ``rows``."""
    info = site / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    record = b""
    for place, data in files.items():
        path = site / os.fsdecode(os.fsencode(place))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
        record += os.fsencode(place) + b",sha256=" + digest + f",{len(data)}\n".encode()
    (info / "RECORD").write_bytes(record + f"{rows}{info.name}/RECORD,,\n".encode())


def told(site: Path) -> list[tuple[str, str]]:
    """Return kind and place below site-packages of each fault."""
    return [(fault.kind, fault.place.removeprefix(f"{site}/")) for fault in verified(site).faults]


def test_a_record_entry_that_is_not_utf8_matches_its_file(tmp_path: Path) -> None:
    install(tmp_path, "demo", {"demo/\udcff.txt": b"a"})
    assert (verified(tmp_path).files, told(tmp_path)) == (1, [])
    (tmp_path / "demo/\udcff.txt").write_bytes(b"b")
    assert told(tmp_path) == [("changed", "demo/\udcff.txt")]


def test_a_file_added_to_a_rocm_folder_is_a_fault(tmp_path: Path) -> None:
    install(tmp_path, "core", {"_rocm_sdk_core/lib/a.so": b"a", "other/b.py": b"b"})
    (tmp_path / "_rocm_sdk_core/lib/__pycache__").mkdir()
    (tmp_path / "_rocm_sdk_core/lib/__pycache__/a.pyc").touch()
    assert told(tmp_path) == []
    (tmp_path / "_rocm_sdk_core/lib/added.so").touch()
    (tmp_path / "_rocm_sdk_core/folder").symlink_to("lib")
    (tmp_path / "other/added.py").touch()  # a folder that anybody may add to
    assert told(tmp_path) == [("extra", "_rocm_sdk_core/folder"), ("extra", "_rocm_sdk_core/lib/added.so")]


def test_files_that_rocm_sdk_adds_to_the_development_tree_are_not_faults(tmp_path: Path) -> None:
    tree = tmp_path / "_rocm_sdk_devel"
    install(tmp_path, "devel", {"_rocm_sdk_devel/a.h": b"a"}, "_rocm_sdk_devel,,\n_rocm_sdk_devel/.expanded.json,,\n")
    install(tmp_path, "device", {f"_rocm_sdk_libraries/lib/{name}": b"kernels" for name in ("a.co", "b.co", "c.co")})
    (tree / ".expanded.json").write_text("{}")
    (tree / ".device_links").mkdir()
    (tree / ".device_links/gfx906.json").write_text('["lib/a.co", "lib/b.co", "lib/c.co", "lib/gone.co"]')
    (tree / "lib").mkdir()
    os.link(tmp_path / "_rocm_sdk_libraries/lib/a.co", tree / "lib/a.co")
    (tree / "lib/b.co").symlink_to("../../_rocm_sdk_libraries/lib/b.co")
    for name in ("c.co", "gone.co"):
        (tree / "lib" / name).write_bytes(b"kernels")
    assert told(tmp_path) == []
    (tree / "lib/c.co").write_bytes(b"changed")
    (tree / "lib/added.co").touch()
    assert told(tmp_path) == [("extra", "_rocm_sdk_devel/lib/added.co"), ("changed", "_rocm_sdk_devel/lib/c.co")]


def test_a_development_tree_under_construction_is_not_a_fault(tmp_path: Path) -> None:
    install(tmp_path, "devel", {"rocm_sdk_devel/_devel.tar": b"a"}, "_rocm_sdk_devel,,\nrocm_sdk_devel,,\n")
    (tmp_path / "_rocm_sdk_devel").mkdir()
    (tmp_path / "_rocm_sdk_devel/a.h").touch()
    assert told(tmp_path) == []


def test_metadata_linked_from_outside_the_environment_is_a_fault(tmp_path: Path) -> None:
    site = tmp_path / "venv/lib/python3.11/site-packages"
    install(site, "demo", {"demo.py": b"a"})
    (site / "demo-1.dist-info").rename(site / "elsewhere")
    (site / "demo-1.dist-info").symlink_to("elsewhere")
    assert verified(tmp_path / "venv").faults == ()
    (site / "elsewhere").rename(tmp_path / "elsewhere")
    (site / "demo-1.dist-info").unlink()
    (site / "demo-1.dist-info").symlink_to(tmp_path / "elsewhere")
    assert [fault.text for fault in verified(tmp_path / "venv").faults] == [
        f"{site}/demo-1.dist-info: is a symlink to {tmp_path}/elsewhere; expected a folder in the environment"
    ]
