"""What ``runs-on`` promises of split libraries is what a reader of its own finds, old and new, alone and on machines.

Libraries have units for any targets, and archives that a splitter would not make: named for one GPU and listing others,
lacking units, with stubs before them, in paths without a placeholder.
"""

from __future__ import annotations

import shutil
from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.binary.kpack.markers import Marker
from rocwheel.device.runs_on import FileVerdict, judge_files
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.compatibility import Runtime
from tests.support.example_counts import examples
from tests.support.fat_libraries import build_fat_library, lay_over, make_bundle
from tests.support.kpack_files import build_split_library, make_kpack
from tests.support.kpack_reader import load_on_machine, load_unit, units_of
from tests.support.libraries import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_compiler, pytest.mark.slow]

NAME = "lib/libx.so"
PATHS = ("../.kpack/x_@GFXARCH@.kpack", "../.kpack/more_@GFXARCH@.kpack", "../.kpack/all.kpack")
TARGETS = ["gfx906", "gfx90a", "gfx90a:xnack+", "gfx90a:xnack-", "gfx90a:sramecc+", "gfx1100", "gfx11-generic"]
GPUS = ["gfx906:sramecc+:xnack-", "gfx90a:sramecc+:xnack+", "gfx90a:sramecc-:xnack-", "gfx1100", "gfx1030"]
MANY = settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])

UNITS = st.lists(st.integers(0, 1), max_size=2, unique=True)
ARCHIVES = st.dictionaries(
    st.sampled_from(["all", *(f"{name}_{target}" for name in ("x", "more") for target in TARGETS)]),
    st.dictionaries(st.sampled_from(TARGETS), UNITS, min_size=1, max_size=3),
    max_size=5,
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library of two units, whose markers name the same archives in another order."""
    markers = [Marker(NAME, PATHS), Marker(NAME, PATHS[::-1])]
    return build_split_library(tmp_path_factory.mktemp("made") / NAME, markers, [(0, 0), (1, 1)])


def write_archives(root: Path, archives: dict[str, dict[str, list[int]]]) -> None:
    """Write archives anew; a target without units is listed by the code of a unit that no wrapper asks for."""
    shutil.rmtree(root / ".kpack", ignore_errors=True)
    (root / ".kpack").mkdir()
    for name, targets in archives.items():
        kernels = {
            (NAME, unit, target): f"{name}: {unit} for {target}".encode()
            for target, units in targets.items()
            for unit in units or [9]
        }
        (root / f".kpack/{name}.kpack").write_bytes(make_kpack(kernels))


def asked(gpu: TargetId) -> list[str]:
    """Return what a runtime asks for on a GPU: its own target and the generic one, with its features."""
    generics = load_catalog().generics_of(gpu.processor)
    return [str(gpu), *(str(TargetId(name, **gpu.features)) for name in generics)]


def promised(verdicts: tuple[FileVerdict, ...], *, old: bool) -> tuple[str | None, ...]:
    """Return what verdicts promise to some runtime, one code or none for each bundle, sorted."""
    stock = [v for v in verdicts if v.runtime is Runtime.STOCK and not v.path.endswith(".kpack")]
    [verdict] = ([v for v in stock if v.up_to] if old else []) or [v for v in stock if not v.up_to]
    return tuple(sorted(str(use.code) for use in verdict.uses for _ in range(use.bundles)))


@MANY
@given(ARCHIVES, st.sampled_from(GPUS))
def test_verdicts_for_a_gpu_are_correct(library: Path, archives: dict[str, dict[str, list[int]]], text: str) -> None:
    write_archives(library.parents[1], archives)
    gpu = parse_target_id(text)
    verdicts = judge_files([library], [gpu])
    for old in (False, True):
        loaded = [load_unit(library, unit, asked(gpu), old=old) for unit in units_of(library)]
        found = [code.decode().rpartition(" ")[2] if isinstance(code, bytes) else "None" for code in loaded]
        assert promised(verdicts, old=old) == tuple(sorted(found)), loaded


@MANY
@given(ARCHIVES, st.sampled_from(list(permutations(GPUS, 2))))
def test_verdicts_for_a_machine_with_two_gpus_are_correct(
    library: Path, archives: dict[str, dict[str, list[int]]], texts: tuple[str, str]
) -> None:
    write_archives(library.parents[1], archives)
    gpus = [parse_target_id(text) for text in texts]
    verdicts = judge_files([library], gpus, is_machine=True)
    for old in (False, True):
        units = units_of(library)
        loaded = [load_on_machine(library, unit, [asked(gpu) for gpu in gpus], old=old) for unit in units]
        for number, gpu in enumerate(gpus):
            own = tuple(verdict for verdict in verdicts if verdict.gpu == gpu)
            codes = [codes[number] for codes in loaded]
            found = [code.decode().rpartition(" ")[2] if isinstance(code, bytes) else "None" for code in codes]
            assert promised(own, old=old) == tuple(sorted(found)), loaded


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.sampled_from(TARGETS), max_size=4, unique=True), min_size=1, max_size=4), st.data())
def test_verdicts_for_split_libraries_with_mixed_units_are_correct(
    tmp_path: Path, units: list[list[str]], data: st.DataObject
) -> None:
    assume(any(units))
    shutil.rmtree(tmp_path, ignore_errors=True)
    bundles = [make_bundle(unit, " ".join(targets)) for unit, targets in enumerate(units)]
    fat = build_fat_library(tmp_path / "tree" / NAME, bundles)
    split_tree(tmp_path / "tree", tmp_path / "out", SplitOrder(choice=SplitChoice()))
    installed = data.draw(st.lists(st.sampled_from(["gfx906", "gfx90a", "gfx1100", "gfx11-generic"]), unique=True))
    targets = [target for target in installed if (tmp_path / "out" / target).exists()]
    made = lay_over(tmp_path / "out", tmp_path / "made", targets=targets or ["host"]) / NAME
    if b".rocm_kpack_ref" not in made.read_bytes():
        assert made.read_bytes() == fat.read_bytes()  # archives can't hold it
        return
    gpus = [parse_target_id(text) for text in GPUS]
    for gpu in gpus:
        verdicts = judge_files([made], [gpu])
        for old in (False, True):
            loaded = [load_unit(made, unit, asked(gpu), old=old) for unit in units_of(made)]
            runs = [isinstance(code, bytes) for code in loaded]
            assert promised(verdicts, old=old).count("None") == runs.count(False)
            assert "KERNEL_NOT_FOUND" not in loaded
