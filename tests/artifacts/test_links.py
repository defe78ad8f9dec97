"""Where symlinks of the merged prefix lead."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.artifacts.catalog import ArtifactName, Entry, FileKind
from rocwheel.artifacts.links import LinkOutcome, LinkTarget, PrefixIndex, resolve_link
from rocwheel.core.reading import FileRange

BASE = ArtifactName("base", "lib", "generic")


def file(path: str) -> Entry:
    return Entry(path, FileKind.FILE, BASE, 0o644, source=FileRange(f"/src/{path}", 0, 1))


def link(path: str, text: str) -> Entry:
    return Entry(path, FileKind.SYMLINK, BASE, 0o777, link=text)


def folder(path: str) -> Entry:
    return Entry(path, FileKind.DIRECTORY, BASE, 0o755)


LIBRARY = file("lib/libx.so.1.2")
PREFIX = PrefixIndex(
    [
        LIBRARY,
        link("lib/libx.so.1", "libx.so.1.2"),
        link("lib/libx.so", "libx.so.1"),
        link("lib64", "lib"),
        link("bin/libx", "../lib64/../lib64//./libx.so"),
        link("llvm", "lib/llvm/"),
        folder("lib/llvm"),
        link("up", "."),
        link("gone", "lib/nothing"),
        link("one", "two"),
        link("two", "one"),
        link("etc", "/etc"),
        link("lib/out", "../../lib"),
        link("lib/deep/under", "../../../x"),
        link("through", "lib/libx.so/../libx.so.1.2"),
        link("slash", "lib/libx.so/"),
    ]
)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("lib/libx.so.1.2", LinkTarget(LinkOutcome.FILE, "lib/libx.so.1.2", LIBRARY)),
        ("lib/libx.so", LinkTarget(LinkOutcome.FILE, "lib/libx.so.1.2", LIBRARY)),
        ("bin/libx", LinkTarget(LinkOutcome.FILE, "lib/libx.so.1.2", LIBRARY)),
        ("lib64/libx.so", LinkTarget(LinkOutcome.FILE, "lib/libx.so.1.2", LIBRARY)),
        ("lib64", LinkTarget(LinkOutcome.DIRECTORY, "lib")),
        ("llvm", LinkTarget(LinkOutcome.DIRECTORY, "lib/llvm")),
        ("up", LinkTarget(LinkOutcome.DIRECTORY, "")),
        ("gone", LinkTarget(LinkOutcome.DANGLING, "lib/nothing")),
        ("one", LinkTarget(LinkOutcome.LOOP, "one")),
        ("etc", LinkTarget(LinkOutcome.OUTSIDE, "etc")),
        ("etc/passwd", LinkTarget(LinkOutcome.OUTSIDE, "etc")),
        ("lib/out", LinkTarget(LinkOutcome.OUTSIDE, "lib/out")),
        ("lib/deep/under", LinkTarget(LinkOutcome.OUTSIDE, "lib/deep/under")),
        ("through", LinkTarget(LinkOutcome.DANGLING, "lib/libx.so.1.2")),
        ("slash", LinkTarget(LinkOutcome.DANGLING, "lib/libx.so.1.2")),
    ],
)
def test_a_path_leads_where_its_links_point(path: str, target: LinkTarget) -> None:
    assert resolve_link(PREFIX, path) == target


@pytest.mark.parametrize(("links", "outcome"), [(40, LinkOutcome.FILE), (41, LinkOutcome.LOOP)])
def test_as_many_links_are_followed_as_linux_follows(links: int, outcome: LinkOutcome) -> None:
    chain = [link(f"l{number}", f"l{number - 1}" if number > 1 else "end") for number in range(1, links + 1)]
    assert resolve_link(PrefixIndex([file("end"), *chain]), f"l{links}").outcome is outcome


def test_a_path_above_an_entry_is_a_directory_without_an_entry_of_its_own() -> None:
    assert PrefixIndex([file("a/b/c")]).kind("a/b") is FileKind.DIRECTORY


def test_a_file_hides_a_directory_entry_of_the_same_path() -> None:
    index = PrefixIndex([folder("x"), file("x"), link("x", "y")])
    assert index.entries["x"] == file("x")


names = st.sampled_from(["a", "b", "c"])
texts = st.lists(st.sampled_from(["a", "b", "c", "..", ".", ""]), min_size=1, max_size=4).map("/".join)
kinds = st.one_of(st.just(None), st.just(b""), texts.filter(lambda text: text and not text.startswith("/")))
trees = st.dictionaries(st.lists(names, min_size=1, max_size=3).map("/".join), kinds, max_size=8)


def _build(root: Path, tree: dict[str, bytes | str | None]) -> list[Entry]:
    entries = []
    for path, content in sorted(tree.items()):
        place = root / path
        if any(parent.is_symlink() or parent.is_file() for parent in place.parents) or os.path.lexists(place):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            place.mkdir()
            entries.append(folder(path))
        elif isinstance(content, str):
            place.symlink_to(content)
            entries.append(Entry(path, FileKind.SYMLINK, BASE, 0o777, link=content))
        else:
            place.write_bytes(content)
            entries.append(file(path))
    return entries


def _ask_the_kernel(root: Path, path: str) -> tuple[LinkOutcome, str | None]:
    try:
        Path(root, path).stat()
    except OSError as e:
        return LinkOutcome.LOOP if e.errno == errno.ELOOP else LinkOutcome.DANGLING, None
    real = Path(os.path.realpath(root / path))
    kind = LinkOutcome.FILE if real.is_file() else LinkOutcome.DIRECTORY
    return kind, "" if real == root else str(real.relative_to(root))


@given(trees)
def test_links_lead_where_the_kernel_goes(tree: dict[str, bytes | str | None]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary).resolve()
        entries = _build(root, tree)
        index = PrefixIndex(entries)
        for entry in entries:
            target = resolve_link(index, entry.path)
            if target.outcome is not LinkOutcome.OUTSIDE:
                path = target.path if target.outcome in {LinkOutcome.FILE, LinkOutcome.DIRECTORY} else None
                assert (target.outcome, path) == _ask_the_kernel(root, entry.path)
