"""Packages that others load libraries from without requiring them."""

from __future__ import annotations

from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.audit.unresolved import undeclared_uses
from tests.support.trees import library, package, tree

OTHER = (package("other"), [library("other/libo.so"), library("other/libp.so")])


def uses(*requires: str, needed: tuple[str, ...] = ("libo.so",)) -> list[tuple[str, str, str]]:
    user = library("demo/a.so", *needed, runpath="$ORIGIN/../other")
    subject = Subject(tree((package(requires=requires), [user]), OTHER), AuditSettings())
    return [(use.file.path, use.name, use.provider) for use in undeclared_uses(subject)]


def test_a_library_of_a_package_that_is_not_required_is_an_undeclared_use() -> None:
    assert uses() == [("demo/a.so", "libo.so", "other")]


def test_a_library_of_a_required_package_is_declared() -> None:
    assert uses("other==1.0") == []


def test_only_the_first_use_of_each_package_is_reported() -> None:
    assert uses(needed=("libp.so", "libo.so")) == [("demo/a.so", "libp.so", "other")]
