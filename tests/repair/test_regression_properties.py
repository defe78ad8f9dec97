"""What a repair would take away, held against the loader model in random environments."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.environment.installed_paths import SITE
from rocwheel.environment.known_libraries import allowed_libraries, is_rocm_folder, is_toolkit_folder
from rocwheel.environment.loader import How, Library, Loader, TreeDisk, place_of
from rocwheel.environment.run_path_choice import SetRunpath
from rocwheel.environment.run_path_entries import expand_entry, leads_nowhere, split_run_path
from rocwheel.environment.sdk_layout import find_sdk_library
from rocwheel.environment.tree import split_environments
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.regressions import find_regressions, is_own_folder
from rocwheel.repair.repair_plan import RepairPlanner
from tests.support.example_counts import examples
from tests.support.trees import data, library, package, tree, with_run_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rocwheel.binary.elf.facts import Elf
    from rocwheel.environment.loader import Search
    from rocwheel.environment.tree import InstalledFile, Tree
    from rocwheel.repair.repair_plan import RepairPlan

ENTRIES = (
    "$ORIGIN",
    "$ORIGIN/..",
    "$ORIGIN/lib",
    "$ORIGIN/../lib",
    "$ORIGIN/gone",
    "$ORIGIN/nope/../lib",
    "$ORIGIN/../nvidia/lib",
    "$ORIGIN/../_rocm_sdk_core/lib",
    "$ORIGIN/../../../../lib",
    "/opt/rocm/lib",
    "/opt/rocm-6.0.0/lib/",
    "/usr/local/cuda/lib64",
    "/opt/vendor/lib",
    "/home/me/lib",
    "local/lib",
)
OWN = ("demo/a.so", "demo/lib/libb.so", "demo/lib/libc.so", "other/libd.so")
NAMES = (
    *(path.rpartition("/")[2] for path in OWN[1:]),
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libhsa-runtime64.so.1",
    "libcudart.so.12",
    "libx.so.1",
)
OPENED = ("libopened.so", "libc.so")
SDK = (
    package("rocm-sdk-core", version="7.1.2", is_context=True),
    [library("_rocm_sdk_core/lib/libamdhip64.so.7"), library("_rocm_sdk_core/lib/libhsa-runtime64.so.1")],
)


@st.composite
def wheels(draw: st.DrawFn) -> Tree:
    """Draw a wheel with a few libraries that need each other and those of toolkits, alone or beside the SDK.

    Some have the SONAMEs of others.
    """
    files = []
    for path in OWN:
        run_path = ":".join(draw(st.lists(st.sampled_from(ENTRIES), max_size=4))) or None
        tag = draw(st.sampled_from(["rpath", "runpath"]))
        needed = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
        soname = draw(st.sampled_from([path.rpartition("/")[2], *NAMES]))
        fields = {tag: run_path, "soname": soname, "imports_dlopen": draw(st.booleans())}
        files.append(library(path, *needed, **fields))  # type: ignore[arg-type]
    if draw(st.booleans()):
        files.append(data("demo/__init__.py", size=9))
    requires = draw(st.sampled_from([(), ("rocm-sdk-core",), ("rocm-sdk-core==6.4.*",), ("rocm-sdk-core==7.1.2",)]))
    return tree((package(requires=requires), files), *draw(st.sampled_from([[SDK], []])))


COPIES = ("demo/m.so", "demo/a.so", *(f"demo/{folder}/{name}" for folder in "vw" for name in ("libx.so", "liby.so")))
COPIED = ("a.so", "libx.so", "liby.so", "libz.so", "libgone.so")
BETWEEN = (
    "$ORIGIN",
    *(f"$ORIGIN/{way}{folder}" for way in ("", "../") for folder in "vw"),
    "/opt/vendor/lib",
    "/tmp/me",
)


@st.composite
def wheels_with_copies(draw: st.DrawFn) -> Tree:
    """Draw a wheel that has libraries twice: which copy is loaded decides what others find as it is loaded already."""
    files = []
    for path in COPIES:
        run_path = ":".join(draw(st.lists(st.sampled_from(BETWEEN), max_size=3, unique=True))) or None
        needed = draw(st.lists(st.sampled_from(COPIED), min_size=1, max_size=2, unique=True))
        soname = draw(st.sampled_from([path.rpartition("/")[2], "libz.so"]))
        fields = {draw(st.sampled_from(["rpath", "runpath"])): run_path, "soname": soname}
        files.append(library(path, *needed, **fields))  # type: ignore[arg-type]
    return tree((package(), [*files, data("demo/__init__.py", size=9)]))


@st.composite
def wheels_of_which_a_copy_brings_more(draw: st.DrawFn) -> Tree:
    """Draw a file that needs a library, of which there are two copies, and what another one needs to be there by then.

    The copies differ in their SONAME, in what they need, and in whether they find that.
    """
    way = ":".join(draw(st.permutations(["$ORIGIN/v", "$ORIGIN/w", "$ORIGIN"])))
    first = library("demo/m.so", "libx.so", "a.so", runpath=way)
    user = library("demo/a.so", draw(st.sampled_from(["libz.so", "liby.so"])), runpath="$ORIGIN/y")
    files = [first, user, library("demo/y/liby.so", soname="liby.so")][: draw(st.sampled_from([2, 3, 3]))]
    for folder in "vw":
        needed = draw(st.sampled_from([(), ("liby.so",), ("libgone.so",)]))
        run_path = draw(st.sampled_from(["$ORIGIN/../y", "$ORIGIN"]))
        soname = draw(st.sampled_from(["libx.so", "libz.so"]))
        files.append(library(f"demo/{folder}/libx.so", *needed, runpath=run_path, soname=soname))
    return tree((package(), [*files, data("demo/__init__.py", size=9)]))


def run_paths() -> st.SearchStrategy[SetRunpath]:
    """Draw a run path of either tag that leads to some of the copies."""
    texts = st.lists(st.sampled_from(BETWEEN), max_size=3, unique=True).map(":".join)
    return st.builds(SetRunpath, texts, st.sampled_from([*RunpathTag]))


@st.composite
def machines(draw: st.DrawFn, made: Tree) -> dict[str, InstalledFile]:
    """Draw what a machine has at the places that the run paths of a wheel lead to, by absolute path.

    It has nothing more in folders that the wheel has for itself.
    """
    led_to = {
        posixpath.normpath(expand_entry(entry, f"{SITE}/{file.folder}"))
        for file in made.files
        for entry in split_run_path(file.run_path)
        if not leads_nowhere(entry, file.folder)
    }
    subject = Subject(made, AuditSettings())
    led_to = {folder for folder in led_to if not is_own_folder(subject, folder)}
    everything = [f"{folder}/{name}" for folder in sorted(led_to) for name in (*NAMES, *OPENED)]
    chosen = draw(st.lists(st.sampled_from(everything), unique=True)) if everything else []
    needed = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
    return {path: library(path, *([] if _is_of_toolkit(path) else draw(needed))) for path in chosen}


def _is_of_toolkit(path: str) -> bool:
    """Return whether a library is of a toolkit and one that the SDK has, too: then it loads what the SDK's does."""
    folder, _, name = path.rpartition("/")
    return find_sdk_library(name) is not None and not folder.startswith(SITE) and is_toolkit_folder(folder)


OPENERS = st.dictionaries(st.sampled_from(OWN), st.lists(st.sampled_from((*NAMES, *OPENED)), max_size=2).map(tuple))
"""What the settings say that files open by name."""


@settings(deadline=None, max_examples=examples(200))
@given(wheels_with_copies(), st.dictionaries(st.sampled_from(COPIES), st.sampled_from([("libz.so",), ("liby.so",)])))
def test_a_repaired_file_finds_no_less_in_any_wheel_with_copies(made: Tree, opened: dict[str, tuple[str, ...]]) -> None:
    audit_settings = AuditSettings(dlopen=opened)
    plan = RepairPlanner(split_environments(made), RepairOptions(settings=audit_settings)).plan(made.distributions[0])
    vendors = [library(f"/opt/vendor/lib/{name}") for name in ("libz.so", "libgone.so")]
    for machine in ([], vendors):
        _check(made, plan, machine, audit_settings)


@settings(deadline=None, max_examples=examples(200))
@given(st.data(), st.sampled_from(["auto", "system", "sdk"]), st.sampled_from([None, *RunpathTag]))
def test_a_repaired_file_finds_no_less_on_any_machine(
    data: st.DataObject, toolkit: str, tag: RunpathTag | None
) -> None:
    made = data.draw(wheels())
    machine = data.draw(machines(made))
    owner = made.distributions[0]
    audit_settings = AuditSettings(dlopen=data.draw(OPENERS))
    options = RepairOptions(toolkit=toolkit, tag=tag, settings=audit_settings)  # type: ignore[arg-type]
    plan = RepairPlanner(split_environments(made), options).plan(owner)
    # Libraries that are not at hand lose what they inherit if a user asks for RUNPATHs.
    beside = _installed_with(made, plan, is_sdk=toolkit != "system")
    beside += machine.values() if tag is not RunpathTag.RUNPATH else []
    _check(made, plan, beside, audit_settings, spares_toolkits=toolkit != "system")


@settings(deadline=None, max_examples=examples(300))
@given(wheels_with_copies(), st.dictionaries(st.sampled_from(COPIES), run_paths(), min_size=1, max_size=3))
def test_edits_without_a_reported_loss_lose_nothing(made: Tree, edits: dict[str, SetRunpath]) -> None:
    _require_told(made, edits)


def test_the_property_detects_a_loss_that_only_another_copy_causes(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [
        library("demo/a.so", "libx.so", rpath="$ORIGIN/w"),
        library("demo/v/libx.so", "liby.so"),
        library("demo/v/liby.so", "libgone.so"),
        library("demo/w/libx.so", "liby.so", "libgone.so", runpath="$ORIGIN/../v:/opt/vendor/lib"),
    ]
    made = tree((package(), [*files, data("demo/__init__.py", size=9)]))
    edits = {"demo/a.so": SetRunpath("$ORIGIN/v", RunpathTag.RPATH)}
    _require_told(made, edits)
    monkeypatch.setattr("rocwheel.repair.regressions.preceded_regressions", lambda *_: iter(()))
    with pytest.raises(AssertionError):
        _require_told(made, edits)


@settings(deadline=None, max_examples=examples(300))
@given(wheels_of_which_a_copy_brings_more(), st.permutations(["$ORIGIN/v", "$ORIGIN/w", "$ORIGIN"]).map(":".join))
def test_a_copy_order_without_a_reported_loss_loses_nothing(made: Tree, run_path: str) -> None:
    _require_told(made, {"demo/m.so": SetRunpath(run_path, RunpathTag.RUNPATH)})


def test_choosing_the_sdk_gives_up_its_folder_names_at_a_wrong_depth() -> None:
    made = tree((package(), [library("demo/lib/libb.so", rpath="$ORIGIN/../_rocm_sdk_core/lib", imports_dlopen=True)]))
    plan = RepairPlanner(split_environments(made), RepairOptions(toolkit="sdk")).plan(made.distributions[0])
    assert {path: edit.value for path, edit in plan.edits.items()} == {"demo/lib/libb.so": ""}
    machine = [library(f"{SITE}/demo/_rocm_sdk_core/lib/libc.so")]
    _check(made, plan, machine, AuditSettings(), spares_toolkits=True)
    with pytest.raises(AssertionError):
        _check(made, plan, machine, AuditSettings(), spares_toolkits=False)


BROUGHT = [
    library("demo/lib/libb.so", "libd.so", rpath="$ORIGIN/lib"),
    library("demo/lib/libc.so", "libb.so", rpath="$ORIGIN"),
    library("other/libd.so"),
]
"""A wheel that needs a library which may be in a folder of another package, and has one itself."""


def test_the_property_detects_a_library_loaded_only_by_a_machine_copy() -> None:
    made = tree((package(), BROUGHT))
    audit_settings = AuditSettings(dlopen={"demo/lib/libc.so": ("libamdhip64.so.6",)})
    plan = RepairPlanner(split_environments(made), RepairOptions(settings=audit_settings)).plan(made.distributions[0])
    beside = f"{SITE}/demo/lib/lib"
    machine = [library(f"{beside}/libd.so", "libamdhip64.so.6"), library(f"{beside}/libamdhip64.so.6")]
    _check(made, plan, machine, audit_settings)
    edits = {"demo/lib/libb.so": SetRunpath("$ORIGIN/../../other", RunpathTag.RPATH)}
    with pytest.raises(AssertionError):
        _check(made, msgspec.structs.replace(plan, edits=edits), machine, audit_settings)


@pytest.mark.parametrize(
    ("rule", "copies"),
    [
        ("dropped_regressions", [library("demo/v/libx.so", soname="libz.so"), library("demo/w/libx.so")]),
        ("replaced_regressions", [library("demo/v/libx.so"), library("demo/w/libx.so", "libgone.so")]),
    ],
)
def test_the_property_detects_a_skipped_rule(
    rule: str, copies: list[InstalledFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    user = library("demo/a.so", *(["libz.so"] if rule == "dropped_regressions" else []))
    first = library("demo/m.so", "libx.so", "a.so", runpath="$ORIGIN/v:$ORIGIN/w:$ORIGIN")
    made = tree((package(), [first, user, *copies, data("demo/__init__.py", size=9)]))
    edits = {"demo/m.so": SetRunpath("$ORIGIN/w:$ORIGIN/v:$ORIGIN", RunpathTag.RUNPATH)}
    _require_told(made, edits)
    monkeypatch.setattr(f"rocwheel.repair.regressions.{rule}", lambda *_: iter(()))
    with pytest.raises(AssertionError):
        _require_told(made, edits)


def _require_told(made: Tree, edits: Mapping[str, SetRunpath]) -> None:
    """Require that edits take nothing away, or that a regression is told."""
    audit_settings, owner = AuditSettings(), made.distributions[0]
    changed = {f"{owner.source}!{path}": edit for path, edit in edits.items()}
    after = with_run_paths(made, changed)
    subjects = (Subject(made, audit_settings), Subject(after, audit_settings))
    if any(find_regressions(*subjects, changed, {owner.source: {owner.name}})):
        return
    vendors = [library(f"/opt/vendor/lib/{name}") for name in ("libz.so", "libgone.so")]
    for machine in ([], vendors):
        _compare(made.files, after.files, machine, audit_settings)


def _check(
    made: Tree,
    plan: RepairPlan,
    beside: Sequence[InstalledFile],
    audit_settings: AuditSettings,
    *,
    spares_toolkits: bool = False,
) -> None:
    wheel = made.files_of[made.distributions[0].source]
    repaired = [_edited(file, plan) for file in wheel]
    _compare(wheel, repaired, beside, audit_settings, spares_toolkits=spares_toolkits)


def _compare(
    wheel: Sequence[InstalledFile],
    repaired: Sequence[InstalledFile],
    beside: Sequence[InstalledFile],
    audit_settings: AuditSettings,
    *,
    spares_toolkits: bool = False,
) -> None:
    """Require that no file of a wheel finds less after a repair, beside the files of a machine."""
    for file in wheel:
        if file.elf is not None:
            before = _found([*wheel, *beside], file.path, audit_settings, spares_toolkits=spares_toolkits)
            after = _found([*repaired, *beside], file.path, audit_settings, spares_toolkits=False)
            assert {found for found in before if found.user in {other.user for other in after}} <= after
            # What may be on a machine is taken to be whole; so only a wheel's own files are held to load as before.
            assert beside or _is_whole(repaired, file.path) or not _is_whole(wheel, file.path)


def _edited(file: InstalledFile, plan: RepairPlan) -> InstalledFile:
    edit = plan.edits.get(file.member)
    return msgspec.structs.replace(file, elf=edit.applied_to(file.elf)) if edit and file.elf else file


def _installed_with(made: Tree, plan: RepairPlan, *, is_sdk: bool) -> list[InstalledFile]:
    """Return the files of the SDK's package if the repaired wheel requires it in the version at hand."""
    required = {*made.distributions[0].requires, *plan.requires}
    at_hand = len(made.distributions) > 1 and "rocm-sdk-core==6.4.*" not in required
    is_required = any(text.startswith("rocm-sdk-core") for text in required)
    return [*SDK[1]] if is_required and (at_hand or (is_sdk and len(made.distributions) == 1)) else []


class _Found(NamedTuple):
    """An object that finds a name, which is empty for the object itself."""

    user: tuple[str, ...]
    """The object's identity; for one of the machine also those of the objects that had it loaded.

    It inherits their RPATHs: others may load it once a file takes a library from another place.
    """
    name: str


def _found(
    files: Iterable[InstalledFile], root: str, audit_settings: AuditSettings, *, spares_toolkits: bool
) -> set[_Found]:
    """Return which objects of the process of a file find which names, with ``""`` for each object itself."""
    elves = {file.path: file.elf for file in reversed([*files]) if file.elf is not None}
    loader = _loaded(elves, root)
    users = {index: user for index in range(len(loader.objects)) if (user := _user(loader, index))}
    found = {_Found(user, "") for user in users.values()}
    found |= {
        _Found(users[s.requester], s.name)
        for s in loader.searches
        if s.requester in users and s.found is not None and not _is_brought(loader, s)
    }
    for index, user in users.items():
        held = loader.objects[index]
        declared = audit_settings.opened_by(place_of(held.library)) if held.library.elf else ()
        # Where a user names what a file opens, it gives up folders for other names.
        is_known = spares_toolkits and declared
        unknown = OPENED if held.library.elf is not None and held.library.elf.imports_dlopen and not is_known else ()
        for name in {*declared, *unknown}:
            opened = _loaded(elves, root)
            search = opened.open_name(name, index)
            place = opened.objects[search.found].library.identity if search.found is not None else ""
            is_spared = spares_toolkits and _is_given_up(place)
            if place and not (is_spared and (name not in declared or search.how is How.LOADED)):
                found.add(_Found(user, name))
    return found


def _is_given_up(place: str) -> bool:
    """Return whether a file is in a folder of a toolkit, or in one that is named as the SDK's and is none of its.

    That is where a run path of the wrong depth leads: ``demo/_rocm_sdk_core/lib``.
    """
    if not place.startswith(SITE):
        return is_toolkit_folder(place)
    inside = place.removeprefix(f"{SITE}/")
    return is_rocm_folder(inside) and not is_rocm_folder(inside.partition("/")[0])


def _is_whole(files: Iterable[InstalledFile], root: str) -> bool:
    """Return whether a file finds everything that it and what it loads need: else the loader refuses it."""
    return not _loaded({file.path: file.elf for file in files if file.elf is not None}, root).missing


def _user(loader: Loader, index: int) -> tuple[str, ...]:
    """Return what an object is told apart by; nothing for a file of the wheel that a library of the machine loads.

    No wheel is built for that.
    """
    chain = tuple(loader.objects[holder].library.identity for holder in loader.ancestors(index))
    is_own = [*map(_is_own, chain)]
    if is_own[0]:
        return chain[:1] if all(is_own) else ()
    return chain


def _is_brought(loader: Loader, search: Search) -> bool:
    """Return whether what a file needs is there only as a library of the machine has loaded it before."""
    if search.found is None or search.how is not How.LOADED:
        return False
    bringer = loader.objects[search.found].loader
    return bringer >= 0 and not _is_own(loader.objects[bringer].library.identity)


def _is_own(place: str) -> bool:
    return place.removeprefix(f"{SITE}/") in (*OWN, *COPIES)


def _loaded(elves: Mapping[str, Elf], root: str) -> Loader:
    loader = Loader(TreeDisk(elves, {}), allowed_libraries())
    loader.load(Library(f"{SITE}/{root}", f"{SITE}/{root}", elves[root]))
    return loader
