"""Folders with libraries for newer processors."""

from __future__ import annotations

from rocwheel.environment.run_path_entries import searched_folders


def test_run_paths_lead_to_what_serves_every_processor_first() -> None:
    assert searched_folders(["a/glibc-hwcaps/x86-64-v2", "b"], "x86-64-v2") == ("b",)
    assert searched_folders(["glibc-hwcaps/x86-64-v2"], "x86-64-v2") == ("",)
    assert searched_folders(["a/glibc-hwcaps/x86-64-v3"], "x86-64-v2") == ()
