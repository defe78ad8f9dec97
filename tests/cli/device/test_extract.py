"""``rocwheel device extract`` as a user runs it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.bundles import bundle_of
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from tests.support.command_line import Run


from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


def test_code_is_extracted_for_each_target_of_each_bundle(run: Run, tmp_path: Path) -> None:
    status, out, _ = run(
        "device", "extract", FIXTURES / "v22/libtwo.ccob.so", "-t", "gfx90a:xnack+", "-t", "gfx906", "-d", tmp_path
    )
    names = [f"libtwo.ccob.so.{number}.{target}.co" for number in (0, 1) for target in ("gfx906", "gfx90a-xnack+")]
    assert status == 0
    assert out.splitlines() == [str(tmp_path / name) for name in names]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert all((tmp_path / name).read_bytes()[:4] == b"\x7fELF" for name in names)


def test_targets_to_extract_may_be_a_family(run: Run, tmp_path: Path) -> None:
    arguments = ("-t", "gfx103X-all;gfx906", "--allow-missing", "-d", tmp_path)
    status, out, err = run("device", "extract", FIXTURES / "v22/libtwo.plain.so", *arguments)
    assert (status, err) == (0, "")
    assert [Path(line).name.split(".")[-2] for line in out.splitlines()] == ["gfx906", "gfx1030"] * 2


def test_bundle_that_declares_more_than_the_limit_is_not_extracted(run: Run, tmp_path: Path) -> None:
    bomb, output = tmp_path / "bomb.ccob", tmp_path / "code"
    data = bytearray((FIXTURES / "v22/saxpy.ccob.hipfb").read_bytes())
    data[8:24] = struct.pack("<QQ", 26 << 20, 5 << 30)  # less than 200 times its size
    bomb.write_bytes(data.ljust(26 << 20, b"\0"))
    status, _, err = run("device", "extract", bomb, "-d", output)
    message = "holds a bundle of 5368709120 bytes; expected at most 4294967296, the limit set here. Set a higher limit"
    assert (status, err.count(message), output.exists()) == (2, 1, False)
    status, _, err = run("device", "extract", bomb, "-d", output, "--limit", "5")
    assert (status, "bytes; expected 5368709120, as its header declares" in err) == (2, True)
    assert not output.exists()


@pytest.mark.parametrize(
    ("rule", "target", "status"),
    [
        ("exact", "gfx1031", 2),
        ("stock", "gfx1031", 2),
        ("extended", "gfx1031", 0),
        ("exact", "gfx906:sramecc+:xnack-", 2),
        ("stock", "gfx906:sramecc+:xnack-", 0),
    ],
)
def test_code_is_extracted_by_the_rule_of_choice(run: Run, tmp_path: Path, rule: str, target: str, status: int) -> None:
    source = FIXTURES / "v22/libtwo.plain.so"
    assert run("device", "extract", source, "-t", target, "--rule", rule, "-d", tmp_path)[0] == status
    assert bool(list(tmp_path.iterdir())) == (status == 0)


def test_missing_code_is_reported_for_every_bundle_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    source = FIXTURES / "v22/libtwo.plain.so"
    status, _, err = run("device", "extract", source, "-t", "gfx942", "-t", "gfx906", "-d", tmp_path)
    assert status == 2
    found = "has no code for gfx942 by the rule 'exact'; expected one of its targets gfx1030, gfx906, gfx90a:xnack+"
    assert err.splitlines() == [
        f"error: {source}: 2 problems",
        f"  {source}: bundle 0 at offset 0x1000: {found}",
        f"  {source}: bundle 1 at offset 0x6000: {found}",
    ]
    assert list(tmp_path.iterdir()) == []


def test_exact_rule_names_the_variants_that_there_are(run: Run, tmp_path: Path) -> None:
    status, _, err = run("device", "extract", FIXTURES / "v22/saxpy.ccob.hipfb", "-t", "gfx90a", "-d", tmp_path)
    assert (status, err.endswith("gfx942. Name a variant, or choose another rule.\n")) == (2, True), err


def test_code_is_extracted_from_the_files_of_a_wheel_and_of_a_folder(run: Run, tmp_path: Path) -> None:
    code = (FIXTURES / "elf/gfx906.co").read_bytes()
    files = {f"demo/{name}/kernels.hipfb": bundle_of(target) for name, target in (("a", "gfx906"), ("b", "gfx1030"))}
    wheel = make_wheel(tmp_path / "wheels", "demo", {"demo/code.co": code, "demo/text.txt": b"text", **files})
    status, out, err = run("device", "extract", wheel, "-t", "gfx906", "-d", tmp_path / "one")
    assert (status, err) == (0, "")
    written = {str(path.relative_to(tmp_path / "one")) for path in (tmp_path / "one").rglob("*") if path.is_file()}
    assert written == {Path(line).relative_to(tmp_path / "one").as_posix() for line in out.splitlines()}
    assert written == {"demo/code.co.0.gfx906.co", "demo/a/kernels.hipfb.0.gfx906.co"}
    status, out, err = run("device", "extract", wheel.parent, "-d", tmp_path / "all")
    assert (status, err, len(out.splitlines())) == (0, "", 3)


def test_code_for_a_target_of_no_file_is_an_error(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "demo", {"demo/a.hipfb": bundle_of("gfx906")})
    status, _, err = run("device", "extract", wheel, "-t", "gfx1100", "-d", tmp_path / "out")
    assert (status, err.startswith(f"error: {wheel}!demo/a.hipfb: "), (tmp_path / "out").exists()) == (2, True, False)
    status, _, err = run("device", "extract", make_wheel(tmp_path, "text", {}), "-d", tmp_path / "out")
    assert (status, "no device code for AMD GPUs" in err) == (2, True)


def test_member_whose_name_leads_out_of_the_wheel_is_not_extracted(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "demo", {"../../climbed.hipfb": bundle_of("gfx906")})
    status, _, err = run("device", "extract", wheel, "-d", tmp_path / "out/deep")
    found = "a path that leads out of the wheel; expected a name below the folder of the wheel"
    assert (status, err) == (2, f"error: {wheel}!../../climbed.hipfb: {found}\n")
    assert list(tmp_path.rglob("climbed*")) == []
