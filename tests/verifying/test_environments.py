"""Environments compared with the RECORD of their packages."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rocwheel.foundation.progress import SILENT
from rocwheel.installed.reading.read_folders import find_site_packages
from rocwheel.verifying.environments import verify_environment
from rocwheel.verifying.values import Fault, Verified
from rocwheel.verifying.verify import verify
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


def test_an_environment_that_pip_made_has_no_fault(site: Path) -> None:
    found = verified(site)
    assert (found.kind, found.faults, found.unchecked) == ("environment", (), 2)
    assert found.files > 6


def test_changed_and_missing_files_are_named(site: Path) -> None:
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


def test_changed_bytecode_is_no_fault(site: Path) -> None:
    for path in site.rglob("*.pyc"):
        path.write_bytes(b"changed")
    assert verified(site).faults == ()


def test_rows_that_lead_out_of_the_environment_are_not_followed(site: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    record = next(site.glob("*.dist-info/RECORD"))
    record.write_text(record.read_text() + "../secret,sha256=AAAA,4\n/etc/hostname,sha256=AAAA,4\n")
    found = verified(site)
    assert (found.faults, found.unchecked) == ((), 4)


def test_scripts_of_a_virtual_environment_are_compared(tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    assert verified(folder).faults == ()
    (folder / "bin/pip").write_text("#!/bin/sh\n")
    [fault] = verified(folder).faults
    assert (fault.kind, fault.place) == ("changed", f"{folder}/bin/pip")


def test_a_record_that_is_missing_or_damaged_is_named(site: Path) -> None:
    record = next(site.glob("*.dist-info/RECORD"))
    record.unlink()
    assert [fault.text for fault in verified(site).faults] == [f"{record}: is missing; expected a file"]
    record.mkdir()
    [fault] = verified(site).faults
    assert (fault.kind, fault.found) == ("damaged", "can't be read (Is a directory)")


def test_a_file_of_two_packages_is_compared_with_the_rows_of_both(site: Path) -> None:
    other = site / "other-1.dist-info"
    other.mkdir()
    hash_of_nothing = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
    (other / "RECORD").write_text(f"demo/a.py,sha256={hash_of_nothing},\nother-1.dist-info/RECORD,,\n")
    [fault] = verified(site).faults
    assert (fault.kind, fault.place) == ("changed", f"{site}/demo/a.py")
    assert fault.expected == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize(("name", "kinds", "unchecked"), [("b.py", ["unlisted"], 2), ("c.txt", [], 3)])
def test_a_row_without_a_hash_is_a_fault_for_code_and_not_compared_else(
    site: Path, name: str, kinds: list[str], unchecked: int
) -> None:
    before = verified(site).files
    (site / "demo" / name).write_text("changed")
    record = next(site.glob("*.dist-info/RECORD"))
    lines = [line for line in record.read_text().splitlines() if "demo/b.py" not in line]
    record.write_text("\n".join([*lines, f"demo/{name},,", ""]))
    found = verified(site)
    assert [fault.kind for fault in found.faults] == kinds
    assert (found.files, found.unchecked) == (before - (not kinds), unchecked)


def test_every_site_packages_of_an_environment_is_compared_once(tmp_path: Path) -> None:
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
