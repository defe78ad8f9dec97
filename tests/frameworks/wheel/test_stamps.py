"""The commits that wheels are stamped with."""

from __future__ import annotations

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.wheel.stamps import parse_commits, render_commit_info


def test_commits_are_sorted_by_repository() -> None:
    commits = parse_commits(["jax=abcdef0", "ROCm/xla=0123456"])
    assert render_commit_info(commits) == (
        '"""The commits that this package was built from."""\n\n'
        'commits = {\n    "ROCm/xla": "0123456",\n    "jax": "abcdef0",\n}\n'
    )


@pytest.mark.parametrize("text", ["jax=", "jax=main", "=abcdef0", 'a"b=abcdef0', "abcdef0", "jax=abcdef0\n"])
def test_what_is_not_a_commit_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_commits([text])
    assert str(caught.value) == (
        f"--commit: is {text!r}; expected REPOSITORY=COMMIT, the commit as 7 to 64 hexadecimal digits. "
        "Check whether looking it up failed."
    )


def test_two_commits_of_one_repository_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        parse_commits(["jax=abcdef0", "jax=abcdef1"])
    assert str(caught.value) == "--commit: gives two commits for jax: abcdef0 and abcdef1; expected one commit"
