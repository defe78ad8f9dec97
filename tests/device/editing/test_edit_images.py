"""Editing the device code of DLLs in place: what tools read before and after, checksums, signatures."""

from __future__ import annotations

from pathlib import Path

import lief
import pefile
import pytest

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.binary.pe.rewrite import SignedFileError
from rocwheel.core.patch import patched_view
from rocwheel.device.device_facts import list_device_code
from rocwheel.device.edit_bundles import Prune, device_patch
from rocwheel.device.edit_file import rewrite_device_code
from tests.support.pe_files import with_certificate

FIXTURES = Path(__file__).parents[2] / "fixtures/pe"
KEPT = Prune(keep=(parse_target_id("gfx906"),))
COMPRESSED = Storage(compress=True)


def targets_in(path: Path) -> set[str]:
    facts = list_device_code(path)
    return {entry.target for bundle in facts.bundles for entry in bundle.entries}


@pytest.mark.parametrize("name", ["two.dll", "two-gnu.dll"])
def test_pruning_leaves_all_but_the_code_and_the_checksum_as_it_was(name: str, tmp_path: Path) -> None:
    output = tmp_path / name
    report = rewrite_device_code(FIXTURES / name, output, KEPT, Storage())
    assert (report.bundles, report.changed) == (2, 2)
    assert targets_in(output) == {"gfx906"}
    old, new = pefile.PE(FIXTURES / name), pefile.PE(output)
    for before, after in zip(old.sections, new.sections, strict=True):
        is_code = before.Name == b".hip_fat"
        assert before.__pack__() == after.__pack__()
        assert (before.get_data() == after.get_data()) is not is_code
    assert (old.OPTIONAL_HEADER.CheckSum == 0) is (name == "two.dll")
    assert new.OPTIONAL_HEADER.CheckSum == (new.generate_checksum() if name == "two-gnu.dll" else 0)
    assert lief.PE.parse(str(output)) is not None


def test_compressed_code_is_what_it_was(tmp_path: Path) -> None:
    output = tmp_path / "a.dll"
    rewrite_device_code(FIXTURES / "two-gnu.dll", output, None, COMPRESSED)
    facts = list_device_code(output)
    assert facts.raw_size == list_device_code(FIXTURES / "two-gnu.dll").raw_size
    assert [bundle.method for bundle in facts.bundles] == ["zstd", "zstd"]
    assert pefile.PE(output).verify_checksum()


def test_patches_and_whole_files_come_to_the_same_bytes(tmp_path: Path) -> None:
    output = tmp_path / "a.dll"
    rewrite_device_code(FIXTURES / "two-gnu.dll", output, None, COMPRESSED)
    data = memoryview((FIXTURES / "two-gnu.dll").read_bytes())
    patch = device_patch(data, name="a.dll", storage=COMPRESSED)
    assert patch is not None
    assert bytes(patched_view(data, patch)) == output.read_bytes()


def signed(tmp_path: Path) -> Path:
    path = tmp_path / "signed.dll"
    path.write_bytes(with_certificate((FIXTURES / "two.dll").read_bytes()))
    return path


def test_a_signed_file_is_refused_where_its_code_would_change(tmp_path: Path) -> None:
    source = signed(tmp_path)
    output = tmp_path / "a.dll"
    with pytest.raises(SignedFileError) as refused:
        rewrite_device_code(source, output, KEPT, Storage())
    assert str(refused.value) == (
        f"{source}: is signed, and any change makes the signature void; expected a file without certificates. "
        "Remove the signature first, and sign the result."
    )
    assert not output.exists()


def test_a_signed_file_whose_code_all_stays_is_copied(tmp_path: Path) -> None:
    source = signed(tmp_path)
    keep = Prune(keep=tuple(parse_target_id(target) for target in ("gfx906", "gfx90a", "gfx1030")))
    rewrite_device_code(source, tmp_path / "a.dll", keep, Storage())
    assert (tmp_path / "a.dll").read_bytes() == source.read_bytes()
