"""Libraries that audited files don't find, and what may still lead to them."""

from __future__ import annotations

import pytest

from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.audit.unresolved import find_unresolved, folders_with, host_hint
from tests.support.trees import library, package, tree


def subject_of(*files: object, **settings: object) -> Subject:
    return Subject(tree((package(), list(files))), AuditSettings(**settings))  # type: ignore[arg-type]


def test_a_library_that_no_package_has_is_unresolved() -> None:
    (found,) = find_unresolved(subject_of(library("demo/a.so", "libnowhere.so.1")), "unresolved-library")
    assert (found.words, found.facts) == ("needs libnowhere.so.1", ("libnowhere.so.1", "demo/a.so"))


def test_a_library_that_is_said_to_be_opened_by_name_is_not_unresolved() -> None:
    subject = subject_of(library("demo/a.so"), dlopen={"demo/a.so": ("libnowhere.so.1",)})
    assert list(find_unresolved(subject, "unresolved-library")) == []


def test_what_a_package_that_is_not_audited_lacks_is_reported_once_for_what_loads_it() -> None:
    context = package("other", is_context=True)
    users = [library(f"demo/{name}.so", "libo.so", runpath="$ORIGIN/../other") for name in "ab"]
    audited = tree((package(), users), (context, [library("other/libo.so", "libnowhere.so.1")]))
    (found,) = find_unresolved(Subject(audited, AuditSettings()), "unresolved-library")
    assert (found.user.path, found.words) == ("demo/a.so", "loads other/libo.so, which needs libnowhere.so.1")


def test_folders_of_an_assumed_sdk_are_named_where_no_package_has_the_library() -> None:
    subject = subject_of(library("demo/a.so", "libamdhip64.so.7"))
    assert folders_with(subject, "libamdhip64.so.7") == ["_rocm_sdk_core/lib"]
    assert folders_with(subject, "libnowhere.so.1") == []


@pytest.mark.parametrize(
    ("run_path", "hint"),
    [
        ("$ORIGIN:$ORIGIN/lib", ""),
        ("$ORIGIN:/opt/rocm/lib", " (only a host that has it in /opt/rocm/lib finds it)"),
        ("/a:/b:/c:/d:/e", " (only a host that has it in /a, /b, /c or 2 more folders finds it)"),
    ],
    ids=["none", "one", "many"],
)
def test_a_hint_names_the_folders_of_the_host_that_a_file_searches(run_path: str, hint: str) -> None:
    assert host_hint(library("demo/a.so", runpath=run_path)) == hint
