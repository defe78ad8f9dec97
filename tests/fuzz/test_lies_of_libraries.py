"""Harnesses find a wrong answer of the very library that a parser is made of: they compare with something else, too."""

from __future__ import annotations

import csv
import html.parser
import importlib
import tarfile
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import packaging.markers
import packaging.requirements
import packaging.utils
import pytest
from packaging.version import Version

import rocwheel.index.trust
import rocwheel.wheels.file_names
from rocwheel.artifacts.deb import Alternatives, Relation
from tests.fuzz.lies import always, each_replaced, replaced, require_found
from trials.fuzz.attempt import attempt
from trials.fuzz.harness import find_harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_REAL_REQUIREMENT = packaging.requirements.Requirement.__init__


def _require_found(name: str, who: str) -> None:
    harness = find_harness(name)
    faults = [attempt(harness, seed) for seed in harness.seeds()]
    assert any(fault.kind == "wrong answer" and who in fault.text for fault in faults if fault), faults


def test_a_csv_reader_that_drops_cells_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = csv.reader
    monkeypatch.setattr(csv, "reader", lambda file: (row[:2] for row in real(file)))
    _require_found("wheels.record", "by RFC 4180")


@pytest.mark.parametrize("field", ["name", "extras", "specifier", "url"])
def test_a_packaging_that_parses_requirements_wrongly_is_found(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = packaging.requirements.Requirement("lie[lie] @ https://lie/" if field == "url" else "lie[lie]>=9")

    def lie(self: packaging.requirements.Requirement, text: str) -> None:
        _REAL_REQUIREMENT(self, text)
        setattr(self, field, getattr(other, field))

    monkeypatch.setattr(packaging.requirements.Requirement, "__init__", lie)
    _require_found("wheels.requirement", "distlib has")


def test_a_packaging_that_evaluates_markers_wrongly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaging.markers.Marker, "evaluate", always(True))
    _require_found("wheels.requirement", "by hand")


@pytest.mark.parametrize(("at", "answer"), [(0, "lie"), (1, Version("9")), (3, frozenset())])
def test_a_packaging_that_parses_wheel_names_wrongly_is_found(
    at: int, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lie(name: str) -> object:
        found = packaging.utils.parse_wheel_filename(name)
        return (*found[:at], answer, *found[at + 1 :])

    for module in (rocwheel.wheels.file_names, importlib.import_module("trials.fuzz.harnesses.wheels")):
        monkeypatch.setattr(module, "parse_wheel_filename", lie)
    _require_found("wheels.file_name", "by hand")


def test_an_html_parser_that_does_not_decode_references_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html.parser, "unescape", lambda text: text)
    _require_found("pages.html", "html5lib has")


def test_a_tarfile_that_decodes_names_wrongly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = tarfile.nts  # type: ignore[attr-defined]
    monkeypatch.setattr(tarfile, "nts", lambda *words: real(*words).replace("x", "y"))
    _require_found("archives.deb_files", "by hand")


def _deb_lying(**fields: object) -> Callable[..., Any]:
    def lying(real: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def lie(*words: Any) -> Iterator[object]:
            with real(*words) as deb:
                yield SimpleNamespace(
                    control=deb.control,
                    members=lambda: (msgspec.structs.replace(member, **fields) for member in deb.members()),
                )

        return lie

    return lying


def _one_place(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda requirement, extras, _: real(requirement, extras, "x-1-cp312-cp312-linux_x86_64.whl")


_LIES: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "versions that are all the same": ("texts.debian_relations", "compare_versions", always(always(0))),
    "another package": (
        "texts.debian_relations",
        "parse_choices",
        always(always((Alternatives((Relation("lie", ">=", "1"), Relation("b"))),))),
    ),
    "names of an ar's members": ("archives.ar", "iter_ar_members", each_replaced(name="lie")),
    "sizes of an ar's members": ("archives.ar", "iter_ar_members", each_replaced(size=0)),
    "paths of a package": ("archives.deb_files", "open_deb", _deb_lying(path="lie")),
    "sizes of a package": ("archives.deb_files", "open_deb", _deb_lying(size=1)),
    "modes of a package": ("archives.deb_files", "open_deb", _deb_lying(mode=0o600)),
    "where a wheel is installed": ("wheels.requirement", "applies", _one_place),
    "a marker that holds everywhere": ("wheels.requirement", "applies", always(always(True))),
    "texts of links": ("pages.html", "read_html_page", replaced(projects=("lie",))),
    "what links are relative to": ("pages.html", "read_html_page", replaced(base="lie/")),
}


@pytest.mark.parametrize("lie", _LIES)
def test_a_parser_that_contradicts_another_parser_is_found(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_found(*_LIES[lie], monkeypatch)
