"""What each file of a repaired wheel finds, and where."""

from __future__ import annotations

from rocwheel.repair.comparison import Found
from tests.repair.plans import SDK, plan
from tests.support.trees import library


def test_what_each_file_finds_is_told() -> None:
    needed = ("libq.so", "libamdhip64.so.7", "libc.so.6", "libx.so.1", "liby.so.1")
    file = library("demo/a.so", *needed, runpath="/opt/x:$ORIGIN/../x/lib")
    made = plan(file, library("demo/b.so", "liby.so.1"), library("demo/lib/libq.so"), beside=SDK)
    folders = "/opt/x:x/lib"
    assert made.finds["demo/a.so"] == (
        Found("libq.so", "wheel", "demo/lib"),
        Found("libamdhip64.so.7", "package", "rocm-sdk-core"),
        Found("libc.so.6", "system"),
        Found("libx.so.1", "kept", folders),
        Found("liby.so.1", "kept", folders),
    )
    assert made.finds["demo/b.so"] == (Found("liby.so.1", "nothing"),)


def test_kept_folders_around_site_packages_are_told_as_the_run_path_has_them() -> None:
    entries = "$ORIGIN/../../../../lib:$ORIGIN/../../../$LIB:$ORIGIN/$LIB:$ORIGIN/../x/lib:/opt/x/:/opt/$PLATFORM"
    made = plan(library("demo/a.so", "libx.so.1", runpath=entries))
    places = "$ORIGIN/../../../../lib:$ORIGIN/../../../$LIB:$ORIGIN/$LIB:x/lib:/opt/x/:/opt/$PLATFORM"
    assert made.finds["demo/a.so"] == (Found("libx.so.1", "kept", places),)
