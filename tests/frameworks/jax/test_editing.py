"""Tests of `rocwheel.frameworks.jax.editing`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.frameworks.jax.checkout import Checkout, SourceFile, read_source
from rocwheel.frameworks.jax.editing import Draft, Question, ask, questions_in, render_patch, without_question
from tests.support.example_counts import examples

TOOLS = {"git": ["git", "apply", "-"], "patch": ["patch", "-p1", "--silent", "--force"]}


def applied(tool: str, files: dict[str, bytes], patch: bytes) -> dict[str, bytes]:
    """Return the files of a folder after a patch."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, data in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        done = subprocess.run(TOOLS[tool], cwd=root, input=patch, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def draft_of(files: dict[str, bytes]) -> Draft:
    return Draft(Checkout({name: read_source(data) for name, data in files.items()}))


LINES = st.lists(st.sampled_from(["a", "b", "", "@@ -1 +1 @@", "--- x", "\t", "é", "d"]), max_size=12)


@given(before=LINES, after=LINES, ends=st.tuples(st.booleans(), st.booleans()), crlf=st.booleans())
@settings(max_examples=examples(25), deadline=None)
def test_git_makes_the_new_text_of_the_old_one(
    before: list[str], after: list[str], ends: tuple[bool, bool], crlf: bool
) -> None:
    old, new = ("\n".join(lines) + ("\n" if end else "") for lines, end in zip((before, after), ends, strict=True))
    data = (old.replace("\n", "\r\n") if crlf else old).encode()
    draft = draft_of({"folder/file": data})
    draft.put("folder/file", new, "because")
    patch = render_patch(draft.changes())
    # The line ends of a text without any can't be known: new lines end as the file's others do.
    expected = new.replace("\n", "\r\n") if crlf and "\n" in old else new
    if patch:
        assert applied("git", {"folder/file": data}, patch) == {"folder/file": expected.encode()}
    else:
        assert data == expected.encode()


@pytest.mark.parametrize("tool", TOOLS)
def test_files_appear_change_and_go(tool: str) -> None:
    before = {"old": b"1\n2\n3\n", "gone": b"x\n", "windows": b"a\r\nb\r\n", "cut": b"a\nb"}
    draft = draft_of(before)
    draft.put("new/file", "text\n", "new")
    draft.put("old", "1\n2\n3\n4\n", "longer")
    draft.put("windows", "a\nc\n", "c")
    draft.put("cut", "a\nc", "c")
    draft.delete("gone", "unused")
    after = {"new/file": b"text\n", "old": b"1\n2\n3\n4\n", "windows": b"a\r\nc\r\n", "cut": b"a\nc"}
    assert applied(tool, before, render_patch(draft.changes())) == after


def test_each_hunk_is_headed_by_the_reasons_of_its_own_changes() -> None:
    lines = [f"{number}\n" for number in range(30)]
    draft = draft_of({"file": "".join(lines).encode()})
    draft.put("file", "".join([*lines[:2], *lines[3:]]), "two is gone")
    draft.phase = 2
    draft.put("file", "".join([*lines[:2], "new\n", *lines[3:]]), "a new one")
    draft.put("file", "".join([*lines[:2], "new\n", *lines[3:], "last\n"]), "one more at the end")
    heads = [line for line in render_patch(draft.changes()).decode().splitlines() if line.startswith("@@")]
    assert heads == [
        "@@ -1,6 +1,6 @@ phase 1: two is gone; phase 2: a new one",
        "@@ -28,3 +28,4 @@ phase 2: one more at the end",
    ]


def test_what_is_changed_back_is_no_change() -> None:
    draft = draft_of({"file": b"a\n"})
    draft.put("file", "b\n", "there")
    draft.put("file", "a\n", "back")
    assert render_patch(draft.changes()) == b""


def test_a_new_program_is_executable_and_a_strange_name_is_quoted() -> None:
    draft = Draft(Checkout({}))
    draft.put('a "b"\té', "x\n", "new", is_executable=True)
    head = render_patch(draft.changes()).decode().splitlines()[:4]
    assert head == [
        r'diff --git "a/a \"b\"\011\303\251" "b/a \"b\"\011\303\251"',
        "new file mode 100755",
        "--- /dev/null",
        r'+++ "b/a \"b\"\011\303\251"',
    ]


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    before = {"file": b"\xff\xfe\none\n"}
    draft = draft_of(before)
    draft.put("file", draft.text("file").replace("one", "two"), "two")
    assert applied("git", before, render_patch(draft.changes())) == {"file": b"\xff\xfe\ntwo\n"}


def test_a_source_file_keeps_its_bytes() -> None:
    for data in (b"", b"a", b"a\r\nb\r\n", b"a\nb\r\n", b"a\rb\n", b"\xff"):
        assert read_source(data).data == data
    assert read_source(b"a\r\nb\n") == SourceFile("a\r\nb\n", is_mixed=True)


TEXT = "which of the two is meant here? " + "The reason is long enough for a second line, and so it is wrapped. " * 2


def test_a_question_is_found_as_it_was_asked() -> None:
    question = " ".join(TEXT.split())
    text = f"a\n{ask(TEXT, '    ')}b\n# other\n{ask('x?')}"
    assert list(questions_in("BUILD", text)) == [Question("BUILD", 2, question), Question("BUILD", 6, "x?")]
    assert without_question(text, question) == f"a\nb\n# other\n{ask('x?')}"


def test_a_question_begins_with_the_mark() -> None:
    assert ask("x?", "\t") == "\t# rocwheel asks: x?\n"
