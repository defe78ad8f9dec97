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
from rocwheel.installed.environments import split_environments
from rocwheel.linking.entries import expand_entry, leads_nowhere, split_run_path
from rocwheel.linking.known.sdk_layout import find_sdk_library
from rocwheel.linking.known.system_libraries import allowed_libraries
from rocwheel.linking.known.toolkits import is_toolkit_folder
from rocwheel.linking.loader import How, Library, Loader
from rocwheel.linking.run_path_choice import SetRunpath
from rocwheel.linking.tree_disk import SITE, TreeDisk, place_of
from rocwheel.repair.comparing.comparison import Loss
from rocwheel.repair.comparing.losses import find_losses
from rocwheel.repair.comparing.own_folders import is_own_folder
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.plan import RepairPlanner
from tests.support.example_counts import examples
from tests.support.trees import data, library, package, tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rocwheel.binary.elf.facts import Elf
    from rocwheel.installed.tree import InstalledFile, Tree
    from rocwheel.linking.loader import Search
    from rocwheel.repair.plan import RepairPlan

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
def test_in_no_wheel_with_copies_a_repaired_file_finds_less(made: Tree, opened: dict[str, tuple[str, ...]]) -> None:
    audit_settings = AuditSettings(dlopen=opened)
    plan = RepairPlanner(split_environments(made), RepairOptions(settings=audit_settings)).plan(made.distributions[0])
    vendors = [library(f"/opt/vendor/lib/{name}") for name in ("libz.so", "libgone.so")]
    for machine in ([], vendors):
        _check(made, plan, machine, audit_settings)


@settings(deadline=None, max_examples=examples(200))
@given(st.data(), st.sampled_from(["auto", "system", "sdk"]), st.sampled_from([None, *RunpathTag]))
def test_on_no_machine_a_repaired_file_finds_less(data: st.DataObject, toolkit: str, tag: RunpathTag | None) -> None:
    made = data.draw(wheels())
    machine = data.draw(machines(made))
    owner = made.distributions[0]
    audit_settings = AuditSettings(dlopen=data.draw(OPENERS))
    options = RepairOptions(toolkit=toolkit, tag=tag, settings=audit_settings)  # type: ignore[arg-type]
    plan = RepairPlanner(split_environments(made), options).plan(owner)
    beside = [*_installed_with(made, plan, is_told=toolkit == "sdk"), *machine.values()]
    _check(made, plan, beside, audit_settings, spares_toolkits=toolkit == "sdk")


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
    for file in wheel:
        if file.elf is not None:
            before = _found([*wheel, *beside], file.path, audit_settings, spares_toolkits=spares_toolkits)
            after = _found([*repaired, *beside], file.path, audit_settings, spares_toolkits=False)
            assert {found for found in before if found.user in {other.user for other in after}} <= after


def _edited(file: InstalledFile, plan: RepairPlan) -> InstalledFile:
    edit = plan.edits.get(file.member)
    return msgspec.structs.replace(file, elf=edit.applied_to(file.elf)) if edit and file.elf else file


def _installed_with(made: Tree, plan: RepairPlan, *, is_told: bool) -> list[InstalledFile]:
    """Return the files of the SDK's package if the repaired wheel requires it in the version at hand."""
    required = {*made.distributions[0].requires, *plan.requires}
    at_hand = len(made.distributions) > 1 and "rocm-sdk-core==6.4.*" not in required
    is_required = any(text.startswith("rocm-sdk-core") for text in required)
    return SDK[1] if is_required and (at_hand or (is_told and len(made.distributions) == 1)) else []


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
        unknown = OPENED if held.library.elf is not None and held.library.elf.imports_dlopen else ()
        for name in {*declared, *unknown}:
            opened = _loaded(elves, root)
            search = opened.open_name(name, index)
            place = opened.objects[search.found].library.identity if search.found is not None else ""
            is_spared = spares_toolkits and not place.startswith(SITE) and is_toolkit_folder(place)
            if place and not (is_spared and (name not in declared or search.how is How.LOADED)):
                found.add(_Found(user, name))
    return found


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


def losses(
    before: Tree,
    *,
    sure: Callable[[str], set[str]] = lambda name: {name},
    opened: Mapping[str, tuple[str, ...]] | None = None,
    **edits: SetRunpath,
) -> list[Loss]:
    owner = before.distributions[0]
    changed = {f"{owner.source}!demo/{name}.so": edit for name, edit in edits.items()}
    files = tuple(
        msgspec.structs.replace(file, elf=changed[file.source].applied_to(file.elf))
        if file.source in changed and file.elf
        else file
        for file in before.files
    )
    after = msgspec.structs.replace(before, files=files)
    settings_ = AuditSettings(dlopen=dict(opened or {}))
    found = find_losses(
        Subject(before, settings_), Subject(after, settings_), changed, {owner.source: sure(owner.name)}, ()
    )
    return list(found)


RUNPATH = RunpathTag.RUNPATH


def test_a_folder_that_may_have_a_library_is_lost() -> None:
    made = tree((package(), [library("demo/a.so", "libx.so.1", runpath="/opt/x/:$ORIGIN")]))
    blamed = (f"{package().source}!demo/a.so",)
    assert losses(made, a=SetRunpath("$ORIGIN", RUNPATH)) == [Loss("demo/a.so", "libx.so.1", ("/opt/x/",), blamed)]
    assert losses(made, a=SetRunpath("/opt/x", RUNPATH)) == [
        Loss("demo/a.so", "libx.so.1", ("demo",), blamed),
    ]
    assert losses(made, a=SetRunpath("$ORIGIN/../demo:/opt/x", RUNPATH)) == []


def test_a_library_of_a_package_that_is_not_required_replaces_nothing() -> None:
    other = (package("other", is_context=True), [library("other/libx.so.1")])
    made = tree((package(), [library("demo/a.so", "libx.so.1", runpath="/opt/x")]), other)
    edit = SetRunpath("$ORIGIN/../other", RUNPATH)
    assert [loss.folders for loss in losses(made, a=edit)] == [("/opt/x",)]
    assert losses(made, a=edit, sure=lambda name: {name, "other"}) == []


def test_what_a_file_opens_by_name_may_be_in_any_folder() -> None:
    made = tree((package(), [library("demo/a.so", runpath="/opt/x:/tmp/me", imports_dlopen=True)]))
    (loss,) = losses(made, a=SetRunpath("", RUNPATH))
    assert loss.words == "demo/a.so would no longer find what it opens by name in /opt/x"


def test_a_folder_around_site_packages_is_named_as_the_run_path_has_it() -> None:
    entries = "$ORIGIN/../../../../lib:$ORIGIN/../../../$LIB:$ORIGIN/../x/lib"
    made = tree((package(), [library("demo/a.so", "libx.so.1", runpath=entries)]))
    (loss,) = losses(made, a=SetRunpath("", RUNPATH))
    places = "$ORIGIN/../../../../lib, $ORIGIN/../../../$LIB, x/lib"
    assert loss.words == f"demo/a.so would no longer find libx.so.1 in {places}"


REPLACED = [
    library("demo/sub/libx.so"),
    library("demo/w/libx.so", soname="libx.so.1"),
    library("demo/q/libx.so.1", "libgone.so"),
]
"""Two files of one name; as the second one has another SONAME, what is loaded after it needs no third."""


def test_a_library_that_another_file_comes_to_load_is_blamed_on_whoever_takes_another_copy() -> None:
    first = library("demo/m.so", "a.so", "c.so", runpath="$ORIGIN:$ORIGIN/sub")
    opener = library("demo/a.so", "libx.so", runpath="$ORIGIN/w:$ORIGIN/sub")
    other = library("demo/sub/c.so", "libx.so.1", runpath="$ORIGIN/../q")
    made = tree((package(), [first, opener, other, *REPLACED]))
    found = losses(made, a=SetRunpath("$ORIGIN/sub:$ORIGIN/w", RUNPATH), m=SetRunpath("$ORIGIN/sub:$ORIGIN", RUNPATH))
    assert found == [Loss("demo/q/libx.so.1", "libgone.so", (), (f"{package().source}!demo/a.so",))]


@pytest.mark.parametrize(
    "first", ["demo/_a.so", "demo/z.so"], ids=["loaded by an earlier file", "loaded by a later one"]
)
def test_what_the_settings_say_a_file_opens_is_compared_whoever_loads_that_file(first: str) -> None:
    file = library("demo/x.so", runpath="/opt/v/lib:$ORIGIN")
    made = tree((package(), sorted([library(first, "x.so", runpath="$ORIGIN"), file], key=lambda held: held.path)))
    edit, blamed = SetRunpath("$ORIGIN", RUNPATH), (f"{package().source}!demo/x.so",)
    found = losses(made, opened={"demo/x.so": ("libv.so",)}, x=edit)
    assert found == [Loss("demo/x.so", "libv.so", ("/opt/v/lib",), blamed)]


def test_what_the_settings_say_a_dependency_opens_is_found_by_the_rpath_that_it_inherits() -> None:
    files = [library("demo/a.so", "libx.so", rpath="$ORIGIN/lib:/opt/v/lib"), library("demo/lib/libx.so")]
    found = losses(
        tree((package(), files)),
        opened={"demo/lib/libx.so": ("libv.so",)},
        a=SetRunpath("$ORIGIN/lib", RunpathTag.RPATH),
    )
    blamed = (f"{package().source}!demo/a.so",)
    assert found == [Loss("demo/lib/libx.so", "libv.so", ("/opt/v/lib",), blamed)]


@pytest.mark.parametrize(
    ("copy", "requires", "another"),
    [
        (library("demo/w/libx.so", soname="libx.so.1"), "libx.so.1", []),
        (library("demo/w/libx.so", "libq.so.1", runpath="$ORIGIN/../q"), "libq.so.1", [library("demo/q/libq.so.1")]),
    ],
    ids=["by the SONAME of the other copy", "since the other copy loaded it"],
)
def test_what_was_found_as_loaded_already_is_lost_with_the_copy_that_had_it_loaded(
    copy: InstalledFile, requires: str, another: list[InstalledFile]
) -> None:
    files = [
        library("demo/a.so", "libx.so", "c.so", runpath="$ORIGIN/w:$ORIGIN/sub"),
        library("demo/sub/c.so", requires, runpath="$ORIGIN"),
        library("demo/sub/libx.so"),
    ]
    found = losses(tree((package(), [*files, copy, *another])), a=SetRunpath("$ORIGIN/sub:$ORIGIN/w", RUNPATH))
    assert found == [Loss("demo/sub/c.so", requires, (), (f"{package().source}!demo/a.so",))]


def test_what_only_a_machines_copy_may_have_loaded_is_lost_with_it() -> None:
    opener = library("demo/c.so", "b.so", rpath="$ORIGIN")
    user = library("demo/b.so", "libd.so", rpath="$ORIGIN/lib")
    made = tree((package(), [data("demo/__init__.py", size=9), opener, user, library("other/libd.so")]))
    opened = {"demo/c.so": ("libamdhip64.so.6",)}
    blamed = (f"{package().source}!demo/b.so",)
    (loss,) = losses(made, opened=opened, b=SetRunpath("$ORIGIN/../other", RunpathTag.RPATH))
    assert loss == Loss("demo/c.so", "libamdhip64.so.6", ("demo/lib",), blamed, brought_by="libd.so")
    assert loss.words == (
        "demo/c.so would no longer find libamdhip64.so.6, which the libd.so in demo/lib may have loaded"
    )
    assert losses(made, opened=opened, b=SetRunpath("$ORIGIN/lib:$ORIGIN/../other", RunpathTag.RPATH)) == []
    assert losses(made, b=SetRunpath("$ORIGIN/../other", RunpathTag.RPATH)) == []


def test_a_machines_copy_that_inherits_no_rpath_has_nothing_loaded() -> None:
    opener = library("demo/c.so", "b.so", runpath="$ORIGIN")
    user = library("demo/b.so", "libd.so", runpath="$ORIGIN/lib")
    made = tree((package(), [opener, user, library("other/libd.so")]))
    edit = SetRunpath("$ORIGIN/../other", RUNPATH)
    assert losses(made, opened={"demo/c.so": ("libamdhip64.so.6",)}, b=edit) == []


def test_what_a_machines_copy_may_have_loaded_is_not_lost_where_its_user_looks_there_too() -> None:
    user = library("demo/b.so", "libd.so", rpath="$ORIGIN/lib")
    made = tree((package(), [user, library("other/libd.so")]))
    edit = SetRunpath("$ORIGIN/../other:$ORIGIN/lib", RunpathTag.RPATH)
    assert losses(made, opened={"demo/b.so": ("libx.so.1",)}, b=edit) == []


def test_the_library_of_a_machines_toolkit_loads_no_more_than_that_of_the_sdk() -> None:
    first = library("demo/a.so", "libamdhip64.so.7", rpath="/opt/rocm/lib")
    made = tree((package(requires=("rocm-sdk-core",)), [first]), SDK)
    edit = SetRunpath("$ORIGIN/../_rocm_sdk_core/lib", RunpathTag.RPATH)
    found = losses(made, sure=lambda name: {name, "rocm-sdk-core"}, opened={"demo/a.so": ("libplugin.so",)}, a=edit)
    assert [loss for loss in found if loss.brought_by] == []


def test_what_a_machines_copy_may_have_loaded_is_not_asked_for_of_what_files_need() -> None:
    files = [library("demo/c.so", "b.so", "libtorch.so", rpath="$ORIGIN"), library("other/libd.so")]
    made = tree((package(), [*files, library("demo/b.so", "libd.so", rpath="$ORIGIN/lib")]))
    assert losses(made, b=SetRunpath("$ORIGIN/../other:$ORIGIN", RunpathTag.RPATH)) == []


BROUGHT = [
    library("demo/lib/libb.so", "libd.so", rpath="$ORIGIN/lib"),
    library("demo/lib/libc.so", "libb.so", rpath="$ORIGIN"),
    library("other/libd.so"),
]
"""A wheel that needs a library which may be in a folder of another package, and has one itself."""


def test_the_property_notices_what_only_a_machines_copy_has_loaded() -> None:
    made = tree((package(), BROUGHT))
    audit_settings = AuditSettings(dlopen={"demo/lib/libc.so": ("libamdhip64.so.6",)})
    plan = RepairPlanner(split_environments(made), RepairOptions(settings=audit_settings)).plan(made.distributions[0])
    beside = f"{SITE}/demo/lib/lib"
    machine = [library(f"{beside}/libd.so", "libamdhip64.so.6"), library(f"{beside}/libamdhip64.so.6")]
    _check(made, plan, machine, audit_settings)
    edits = {"demo/lib/libb.so": SetRunpath("$ORIGIN/../../other", RunpathTag.RPATH)}
    with pytest.raises(AssertionError):
        _check(made, msgspec.structs.replace(plan, edits=edits), machine, audit_settings)
