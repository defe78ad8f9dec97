"""Harnesses find the small faults that a parser or an edit may get: one rule forgotten, and all else as it was."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rocwheel.artifacts import host_parts
from rocwheel.artifacts.host_parts import HowLoaded
from rocwheel.binary.bundles.device_code import ArHeader
from rocwheel.core.errors import InputError
from rocwheel.wheels.metadata import wheel_headers
from tests.fuzz.lies import always, each_replaced, require_found
from trials.fuzz.attempt import attempt
from trials.fuzz.harness import find_harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rocwheel.artifacts.deb import DebMember
    from rocwheel.wheels.file_names import FileName

    Lie = Callable[[Any], Any]


def _each(change: Callable[[DebMember], DebMember]) -> Lie:
    """Return what makes a package give its members with this change."""

    def lying(real: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def lie(*words: Any) -> Iterator[object]:
            with real(*words) as deb:
                yield SimpleNamespace(control=deb.control, members=lambda: map(change, deb.members()))

        return lie

    return lying


def _with_relative_link(member: DebMember) -> DebMember:
    return msgspec.structs.replace(member, link=member.link and member.link.lstrip("/"))


def _cut_link(member: DebMember) -> DebMember:
    return msgspec.structs.replace(member, link=member.link and member.link[:100])


def _without_execution(member: DebMember) -> DebMember:
    return msgspec.structs.replace(member, mode=member.mode & ~0o111)


def _empty_name(member: DebMember) -> DebMember:
    return msgspec.structs.replace(member, same_as=None)


def _with_older_python(real: Callable[..., bool]) -> Callable[..., bool]:
    return lambda requirement, extras, file: real(requirement, extras, file.replace("py3-", "py39-"))


def _never_on_older_macs(real: Callable[..., bool]) -> Callable[..., bool]:
    return lambda requirement, extras, file: (
        real(requirement, extras, file) and not ("universal2" in file and "x86_64" in str(requirement.marker))
    )


def _long_version(real: Callable[[str], FileName]) -> Callable[[str], FileName]:
    def lie(text: str) -> FileName:
        found = real(text)
        _, _, rest = found.identity.partition(" ")
        return msgspec.structs.replace(found, identity=f"{found.version} {rest}")

    return lie


def _closed(real: Callable[..., Any]) -> Callable[..., Any]:
    def lie(path: Path) -> tuple[object, Path]:
        settings, found = real(path)
        return msgspec.structs.replace(settings, site_packages_length=81), found

    return lie


def _without_long_lines(real: Any) -> Any:
    return SimpleNamespace(LONG_LINE=real.LONG_LINE, _interpreter=lambda path: real._interpreter(path).split(" ")[0])


def _unchecked(_: object) -> Callable[..., str]:
    def lie(info: Path, wheel: bytes) -> str:
        build = "".join(f"-{value}" for name, value in wheel_headers(wheel) if name == "build")
        return f"{info.name.removesuffix('.dist-info')}{build}-py3-none-any.whl"

    return lie


def _refused(*_: object) -> object:
    source = "input"
    raise InputError(source, "is refused")


def _refused_link(member: DebMember) -> Any:
    return _refused() if member.same_as else member


_FAULTS: dict[str, tuple[str, str, Lie]] = {
    "pointers that the loader relocates": (
        "elf.moved_words",
        "moved_words.are_same_but_moved",
        lambda real: lambda *words: real(*words[:-1], HowLoaded(is_fixed=False, relocated=frozenset(range(1 << 16)))),
    ),
    "libraries that are loaded anywhere": (
        "elf.moved_words",
        "moved_words.are_same_but_moved",
        lambda real: lambda *words: real(*words[:-1], HowLoaded(is_fixed=True, relocated=words[-1].relocated)),
    ),
    "words that have moved": ("elf.moved_words", "moved_words.are_same_but_moved", always(always(False))),
    "a package's absolute links": ("archives.deb_files", "open_deb", _each(_with_relative_link)),
    "a package's long links": ("archives.deb_files", "open_deb", _each(_cut_link)),
    "a package's programs": ("archives.deb_files", "open_deb", _each(_without_execution)),
    "a package's second names of a file": ("archives.deb_files", "open_deb", _each(_empty_name)),
    "names that end in NUL": (
        "archives.ar",
        "iter_ar_members",
        lambda real: lambda data, name: real(bytes(data).replace(b"j\0", b"jj"), name=name),
    ),
    "xnack": ("imports.gpu_field", "parse_gpu_field", each_replaced(xnack=None)),
    "sramecc": ("imports.gpu_field", "parse_gpu_field", each_replaced(sramecc=None)),
    "which values go": (
        "edits.metadata",
        "drop_values",
        lambda real: lambda data, field, _: real(data, field, lambda _: True),
    ),
    "lines of METADATA that end in CR and LF": (
        "edits.metadata",
        "set_values",
        lambda real: lambda *words: real(*words).replace(b"added==1\r\n", b"added==1\n"),
    ),
    "lines of WHEEL that end in CR and LF": (
        "edits.wheel",
        "set_wheel_fields",
        lambda real: lambda *words, **options: real(*words, **options).replace(b"amd64\r\n", b"amd64\n"),
    ),
    "the build number": (
        "edits.wheel",
        "unpacked_name",
        lambda real: lambda info, wheel: real(info, wheel.replace(b"Build", b"Built")),
    ),
    "tags that a name has too many of": (
        "edits.wheel",
        "unpacked_name",
        lambda real: lambda info, wheel: real(info, wheel + b"Tag: lie-none-any\n"),
    ),
    "zeros at a version's end": ("wheels.file_name", "parse_file_name", _long_version),
    "the oldest Python": ("wheels.requirement", "applies", _with_older_python),
    "both machines of a universal wheel": ("wheels.requirement", "applies", _never_on_older_macs),
    "a default of a setting": ("settings.audit", "find_settings", _closed),
    "the tag of a noted hash": (
        "settings.documents",
        "noted_hash",
        lambda real: lambda store, name, _: real(store, name, "x"),
    ),
    "files that are noted as links": ("settings.documents", "find_added", lambda real: lambda site, _: real(site, {})),
    "files that a page lists": (
        "settings.previous",
        "read_previous",
        lambda real: lambda *words: {name: {*files} - {"a"} for name, files in real(*words).items()},
    ),
    "files of a page that are elsewhere": (
        "settings.previous",
        "read_previous",
        lambda real: lambda *words: {name: {*files, "d"} for name, files in real(*words).items()},
    ),
    "pages of others": (
        "settings.previous",
        "read_previous",
        lambda real: lambda *words: {"foreign": {"a"}, **real(*words)},
    ),
    "projects that the root alone lists": (
        "settings.previous",
        "read_previous",
        lambda real: lambda *words: {"hip": real(*words)["hip"]},
    ),
    "what an edit of requirements leaves": (
        "edits.metadata",
        "edit_requirements",
        lambda real: lambda data, edit: real(data, edit).replace(b"Provides-Extra", b"Provides-Other"),
    ),
    "that a body isn't edited": (
        "edits.metadata",
        "edit_requirements",
        lambda real: lambda data, edit: real(data, edit).replace(b"of the body", edit("of the body").encode()),
    ),
    "folds of a version": (
        "edits.metadata",
        "set_version",
        lambda real: lambda data, version: real(data.replace(b"Version:\n ", b"Version:9\nOther:"), version),
    ),
    "that builds are refused": ("edits.wheel", "unpacked_name", _unchecked),
    "good builds": ("edits.wheel", "unpacked_name", always(_refused)),
    "good hard links": ("archives.deb_files", "open_deb", _each(_refused_link)),
    "variables before what env looks for": (
        "doctor.script",
        "script_interpreter",
        lambda real: lambda head: real(head.replace(b"A=1", b"A-1")),
    ),
    "the second way to have env split": (
        "doctor.script",
        "script_interpreter",
        lambda real: lambda head: real(head.replace(b"--split-string=", b"--other=")),
    ),
    "what env looks for": ("doctor.script", "script_interpreter", lambda real: lambda head: real(head.split(b" ")[0])),
    "quotes of a shell": ("doctor.script", "_doctor_files", _without_long_lines),
    "folders of a server": (
        "servers.listing",
        "list_pages",
        lambda real: lambda *words: [file for file in real(*words) if "/" not in file.name],
    ),
}
"""What is forgotten: the harness, a function, and what makes that forget it."""


@pytest.mark.parametrize("rule", _FAULTS)
def test_a_missing_rule_is_found(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_found(*_FAULTS[rule], monkeypatch)


def test_an_ar_reader_that_ignores_padding_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ArHeader, "padded_size", property(lambda header: header.size))
    require_found("archives.ar", "iter_ar_members", lambda real: real, monkeypatch)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("_NEAR", 63),
        ("_NEAR", 65),
        ("_TABLE_SIZE", 4000),
        ("_TABLE_SIZE", 8192),
        ("_POINTER_TAGS", frozenset({3, 4, 5})),
        ("_POINTER_TAGS", frozenset(range(1 << 8))),
        ("_SYMBOL_AT", 8),
        ("_UNWINDING", ".none"),
        ("_UNWINDING_INDEX", ".none"),
        ("_EXCEPTIONS", ".none"),
        ("_TABLES_OF_LINKER", frozenset()),
    ],
)
def test_a_changed_rule_for_moved_words_is_found(rule: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_parts, rule, value)
    harness = find_harness("elf.moved_words")
    faults = [attempt(harness, seed) for seed in harness.seeds()]
    assert "wrong answer" in {fault.kind for fault in faults if fault}
