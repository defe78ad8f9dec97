"""Repairs, held against the real loader: what it found before, it finds after (`tests.support.repair_proof`).

The long run over published wheels is ``make repair-proof``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.support.libraries import Lib, build_tree
from tests.support.repair_proof.chroot import SITE, obstacle
from tests.support.repair_proof.corpus import PLATFORMS, read_corpus
from tests.support.repair_proof.proof import Loss, Proof, prove
from tests.support.repair_proof.report import Row
from tests.support.repair_proof.run import Trial, errors_of
from tests.support.repair_proof.stubs import Stubs
from tests.support.repair_proof.trace import unmet
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(obstacle()), reason=obstacle())]

CORE = "$ORIGIN/../_rocm_sdk_core/lib"
OPENS = 'void *dlopen(const char *, int); void *open_it(void) { return dlopen("libtool.so.3", 2); }'

Hold = Callable[..., Proof]
WheelOf = Callable[..., "Path"]


@pytest.fixture
def wheel_of(tmp_path: Path) -> WheelOf:
    """Return a function that packs libraries, by their paths in site-packages, into a wheel in a folder."""

    def pack(folder: str, *libraries: Lib, requires: tuple[str, ...] = ()) -> Path:
        tree = build_tree(tmp_path / folder / "tree", *libraries)
        files = {library.path: tree / library.path for library in libraries}
        return make_wheel(tmp_path / folder, "plugin", files, requires=requires)

    return pack


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Stubs:
    return Stubs(tmp_path_factory.mktemp("stubs"))


@pytest.fixture
def hold(tmp_path: Path, stubs: Stubs) -> Hold:
    """Return a function that compares two wheels."""

    def hold(original: Path, repaired: Path) -> Proof:
        return prove(original, repaired, tmp_path / f"roots-of-{repaired.parent.name}", stubs)

    return hold


def test_a_removed_folder_is_a_loss(wheel_of: WheelOf, hold: Hold) -> None:
    original = wheel_of("old", Lib("plugin/_x.so", ("libtool.so.3",), "/opt/tool/lib:$ORIGIN/../tools/lib"))
    repaired = wheel_of("new", Lib("plugin/_x.so", ("libtool.so.3",), "$ORIGIN/../tools/lib"))
    proof = hold(original, repaired)
    assert proof.places.folders == ("/opt/tool/lib", f"{SITE}/plugin/../tools/lib")
    assert proof.losses == [
        Loss(
            file="plugin/_x.so",
            library="libtool.so.3",
            found_at="/opt/tool/lib/libtool.so.3",
            scenario="/opt/tool/lib",
            run_path="/opt/tool/lib:$ORIGIN/../tools/lib",
            repaired="$ORIGIN/../tools/lib",
        )
    ]
    # Each place alone, and all together; in the original, then in the repaired wheel.
    assert (proof.before, proof.after, proof.gained) == (3, 2, 0)


def test_a_library_in_a_required_package_is_not_a_loss(wheel_of: WheelOf, hold: Hold) -> None:
    original = wheel_of("old", Lib("plugin/_x.so", ("libamdhip64.so.7",), "/opt/rocm/lib"))
    repaired = wheel_of("new", Lib("plugin/_x.so", ("libamdhip64.so.7",), CORE), requires=("rocm-sdk-core",))
    assert hold(original, repaired).losses == []
    undeclared = wheel_of("bare", Lib("plugin/_x.so", ("libamdhip64.so.7",), CORE))
    assert [loss.scenario for loss in hold(original, undeclared).losses] == ["/opt/rocm/lib"]


def test_a_library_of_another_version_is_a_loss(wheel_of: WheelOf, hold: Hold) -> None:
    original = wheel_of("old", Lib("plugin/_x.so", ("libamdhip64.so.6",), "/opt/rocm/lib"))
    repaired = wheel_of("new", Lib("plugin/_x.so", ("libamdhip64.so.6",), CORE), requires=("rocm-sdk-core",))
    found = [(loss.library, loss.scenario) for loss in hold(original, repaired).losses]
    assert found == [("libamdhip64.so.6", "/opt/rocm/lib"), ("libamdhip64.so.6", "all")]


def test_libraries_opened_by_name_count(wheel_of: WheelOf, hold: Hold) -> None:
    original = wheel_of("old", Lib("plugin/_x.so", (), "/opt/tool/lib", source=OPENS))
    repaired = wheel_of("new", Lib("plugin/_x.so", (), "", source=OPENS))
    found = [(loss.file, loss.library, loss.run_path, loss.repaired) for loss in hold(original, repaired).losses]
    assert found == [("plugin/.opened-by-_x.so", "libtool.so.3", "/opt/tool/lib", "")] * 2


def test_dependencies_found_through_an_inherited_rpath_count(wheel_of: WheelOf, hold: Hold) -> None:
    helper = Lib("plugin/libhelp.so", ("libtool.so.3",))
    x = Lib("plugin/_x.so", ("libhelp.so",), "$ORIGIN:/opt/tool/lib", is_rpath=True)
    repaired = wheel_of("new", x._replace(is_rpath=False), helper)
    found = [(loss.file, loss.library) for loss in hold(wheel_of("old", x, helper), repaired).losses]
    # In the place alone, with everything there, and while its libraries need what is in each of the two folders.
    assert found == [("plugin/libhelp.so", "libtool.so.3")] * 4


def test_libraries_outside_the_wheel_that_inherit_an_rpath_count(wheel_of: WheelOf, hold: Hold) -> None:
    x = Lib("plugin/_x.so", ("libtool.so.3",), "/opt/tool/lib:/opt/more/lib:$ORIGIN/lib", is_rpath=True)
    own = Lib("plugin/lib/libown.so")
    original = wheel_of("old", x, own)
    assert hold(original, wheel_of("same", x, own)).losses == []
    losses = hold(original, wheel_of("new", x._replace(is_rpath=False), own)).losses
    asker, inherited = "/opt/tool/lib/libtool.so.3", "libinherited-by-stubs.so.1"
    assert [(loss.file, loss.library, loss.scenario, loss.found_at) for loss in losses] == [
        (asker, inherited, f"inherited from {place}", f"{place}/{inherited}")
        for place in ("/opt/tool/lib", "/opt/more/lib", f"{SITE}/plugin/lib")
    ]


def test_a_required_package_need_not_inherit_the_rpath_of_the_copy_it_replaces(wheel_of: WheelOf, hold: Hold) -> None:
    original = wheel_of("old", Lib("plugin/_x.so", ("libamdhip64.so.7",), "/opt/rocm/lib", is_rpath=True))
    repaired = wheel_of("new", Lib("plugin/_x.so", ("libamdhip64.so.7",), CORE), requires=("rocm-sdk-core",))
    assert hold(original, repaired).losses == []


def test_two_spellings_of_a_folder_are_accepted(wheel_of: WheelOf, hold: Hold) -> None:
    original = wheel_of("old", Lib("plugin/_x.so", ("libtool.so.3",), "/opt/tool/lib:/opt/tool/lib/../lib"))
    repaired = wheel_of("new", Lib("plugin/_x.so", ("libtool.so.3",), "/opt/tool/lib"))
    proof = hold(original, repaired)
    assert proof.places.folders == ("/opt/tool/lib", "/opt/tool/lib/../lib")
    assert (proof.before, proof.after, proof.losses) == (3, 3, [])


def test_build_folders_exist_on_no_machine(wheel_of: WheelOf, hold: Hold) -> None:
    entries = "/home/builder/out:$ORIGIN/../../_solib_k8/x:lib"
    original = wheel_of("old", Lib("plugin/_x.so", ("libtool.so.3",), entries))
    places = hold(original, original).places
    assert places.folders == ()
    assert places.builds == ("/home/builder/out", f"{SITE}/plugin/../../_solib_k8/x")
    assert places.unfixed == ("lib",)


def test_only_folders_that_the_user_gives_up_may_be_lost(wheel_of: WheelOf, hold: Hold) -> None:
    opens = Lib("plugin/_x.so", (), "/opt/rocm/lib", source=OPENS)
    needs = Lib("plugin/_x.so", ("libtool.so.3",), "/opt/rocm/lib")
    other = opens._replace(run_path="/opt/tool/lib")
    opened = hold(wheel_of("a", opens), wheel_of("b", opens._replace(run_path="")))
    needed = hold(wheel_of("c", needs), wheel_of("d", needs._replace(run_path="")))
    elsewhere = hold(wheel_of("e", other), wheel_of("f", other._replace(run_path="")))
    given_up = frozenset({"/opt/rocm/lib"})
    assert Row("plugin 1.0", (), proof=opened).has_fault
    assert not Row("plugin 1.0", (), proof=opened, given_up=given_up).has_fault
    assert Row("plugin 1.0", (), proof=needed, given_up=given_up).has_fault
    assert Row("plugin 1.0", (), proof=elsewhere, given_up=given_up).has_fault


def test_audit_errors_are_distinguished_by_missing_library(wheel_of: WheelOf) -> None:
    wheel = wheel_of("dist", Lib("plugin/_x.so", ("libtool.so.3",), "lib"), Lib("plugin/_y.so", ("libtool.so.3",)))
    assert errors_of(wheel) == {"missing: libtool.so.3", "run-path-relative: plugin/_x.so"}


@pytest.mark.parametrize("lacks", ["libgone.so.1", "libc.so.6"])
def test_errors_in_a_package_beside_the_wheel_are_not_faults(
    wheel_of: WheelOf, tmp_path: Path, stubs: Stubs, lacks: str
) -> None:
    wheel = wheel_of("dist", Lib("plugin/_x.so", ("libtool.so.3",)))
    tool = build_tree(tmp_path / "tool", Lib("libtool.so.3", (lacks,)))
    other = make_wheel(tmp_path / "beside", "tool", {"tool/libtool.so.3": tool / "libtool.so.3"})
    row = Trial(wheel, (other,)).run(tmp_path, stubs)
    assert (row.errors, row.has_fault, row.proof and row.proof.losses) == ((), False, [])


def test_every_wheel_in_the_corpus_is_fully_identified() -> None:
    corpus = read_corpus()
    projects = [wheel.project for wheel in corpus]
    assert len(set(projects)) == len(corpus) >= 20
    assert all(re.fullmatch("[0-9a-f]{64}", wheel.sha256) for wheel in corpus)
    assert all(wheel.file.startswith(f"{wheel.project.replace('-', '_')}-{wheel.version}-") for wheel in corpus)
    tags = [set(wheel.file.removesuffix(".whl").split("-")[-1].split(".")) for wheel in corpus]
    assert all(tag & set(PLATFORMS) for tag in tags)
    assert {name for wheel in corpus for name in wheel.beside} <= set(projects)


def test_a_search_that_maps_no_library_is_unmet() -> None:
    lines = [
        " 7:\tfile=liba.so [0];  needed by /x.so [0]",
        " 7:\tfile=liba.so [0];  generating link map",
        " 7:\tfile=libb.so [0];  needed by /x.so [0]",
        " 7:\tfile=libb.so [0];  needed by /lib/liba.so [0]",
    ]
    assert list(unmet(lines)) == [("/x.so", "libb.so"), ("/lib/liba.so", "libb.so")]


WHEELS = {
    "a toolkit of the machine": [
        Lib("plugin/_x.so", ("libcudart.so.12", "libcublas.so.12"), "/usr/local/cuda-12.1/lib64")
    ],
    "an older ROCm of the machine": [Lib("plugin/_x.so", ("libamdhip64.so.6",), "/opt/rocm-6.0.0/lib:/opt/rocm/lib")],
    "ROCm 7 of the machine": [Lib("plugin/_x.so", ("libamdhip64.so.7", "librocblas.so.5"), "/opt/rocm/lib")],
    "two versions in one wheel": [
        Lib("plugin/_6.so", ("libamdhip64.so.6",), "/opt/rocm-6.0.0/lib"),
        Lib("plugin/_7.so", ("libamdhip64.so.7",), "/opt/rocm-7.0.0/lib"),
    ],
    "a toolkit's wheels": [Lib("plugin/_x.so", ("libcudart.so.12",), "$ORIGIN/../nvidia/cuda_runtime/lib")],
    "what is opened by name": [Lib("plugin/_x.so", (), "/opt/tool/lib", source=OPENS)],
    "an inherited RPATH": [
        Lib("plugin/_x.so", ("libhelp.so",), "$ORIGIN:/opt/tool/lib", is_rpath=True),
        Lib("plugin/libhelp.so", ("libtool.so.3",)),
    ],
    "an RPATH that a library outside of the wheel inherits": [
        Lib("plugin/_x.so", ("libmid.so", "libtool.so.3"), "/tmp/x:$ORIGIN/lib:/opt/tool/lib", is_rpath=True),
        Lib("plugin/lib/libmid.so", ("libtool.so.3",)),
    ],
    "one library of each": [
        Lib("plugin/_x.so", ("libamdhip64.so.7", "libcudart.so.12"), "/opt/rocm/lib:/opt/cuda/lib")
    ],
}


@pytest.mark.deep
@pytest.mark.parametrize("name", WHEELS)
def test_a_repair_loses_no_library(tmp_path: Path, wheel_of: WheelOf, hold: Hold, run: Run, name: str) -> None:
    original = wheel_of("dist", *WHEELS[name])
    assert run("repair", original, "--output", tmp_path / "out").status in {0, 1}
    (repaired,) = (tmp_path / "out").glob("*.whl")
    assert hold(original, repaired).losses == []
