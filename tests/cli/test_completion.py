"""What shells are offered after <TAB>, asked for as the completion scripts of bash, zsh and fish ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.command_line import Run


SHELLS = "expected one of bash, zsh, fish. Without a value, the option applies to the current shell."


@pytest.fixture
def offered(run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return a function that completes the last of some words as bash does."""

    def complete(*words: str) -> list[str]:
        monkeypatch.setenv("_ROCWHEEL_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", "\n".join(("rocwheel", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return [line.removeprefix("plain,") for line in run().stdout.split("\n") if line]

    return complete


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["targets", "list", "gfx94"], ["gfx940", "gfx941", "gfx942", "gfx94X-all", "gfx94X-dcgpu"]),
        (["targets", "list", "nat"], ["native"]),
        (["targets", "runs-on", "gfx90a"], ["gfx90a", "gfx90a-dcgpu"]),
        (["targets", "list", "--filter", "family=gfx110X-d"], ["family=gfx110X-dgpu"]),
        (["build", "--targets", "gfx906,gfx95"], ["gfx906,gfx950", "gfx906,gfx950-all", "gfx906,gfx950-dcgpu"]),
        (["device", "prune", "a", "--targets", "gfx12-"], ["gfx12-generic", "gfx12-5-generic"]),
        (["audit", "--select", "missing-b"], ["missing-build-id"]),
        (["audit", "--ignore", "missing-b"], ["missing-build-id"]),
        (["runpath", "for", "--tool", "cm"], ["cmake"]),
        (["targets", "flags", "--tool", "gen"], ["gentoo", "gentoo-desc"]),
        (["targets", "det"], ["detect"]),
        (["device", "compress", "--jo"], ["--jobs"]),
    ],
    ids=lambda value: " ".join(value) if value else "",
)
def test_known_values_are_completed(offered: Callable[..., list[str]], words: list[str], expected: list[str]) -> None:
    assert offered(*words) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_zsh_and_fish_complete_the_same_values(run: Run, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("_ROCWHEEL_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "rocwheel audit --select missing-b")
    monkeypatch.setenv("COMP_CWORD", {"zsh": "3", "fish": "missing-b"}[shell])
    assert "missing-build-id" in run().stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_each_shell_is_printed(run: Run, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("_ROCWHEEL_COMPLETE", f"{shell}_source")
    assert f"_ROCWHEEL_COMPLETE={shell}_complete" in run().stdout


@pytest.mark.parametrize(
    ("words", "beginning"),
    [
        (["--show-completion", "bash"], "_rocwheel_completion() {"),
        (["--show-completion", "zsh"], "#compdef rocwheel"),
        (["--show-completion=fish"], "function _rocwheel_completion"),
        (["-v", "--show-completion", "zsh"], "#compdef rocwheel"),
    ],
)
def test_show_completion_prints_the_script_of_the_named_shell(run: Run, words: list[str], beginning: str) -> None:
    done = run(*words)
    assert (done.status, done.stdout.startswith(beginning), done.stderr) == (0, True, "")


def test_install_completion_installs_for_the_named_shell(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    status, out, _ = run("--install-completion", "zsh")
    assert (status, out.splitlines()[0]) == (0, f"zsh completion installed in {tmp_path}/.zfunc/_rocwheel")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".zfunc", ".zshrc"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tcsh"], f"is 'tcsh'; {SHELLS}"),
        (["zsh", "fish"], "is followed by 'fish'; expected nothing after zsh"),
        (["zsh", "--help"], "is followed by '--help'; expected nothing after zsh"),
    ],
)
def test_an_unsupported_shell_is_refused(run: Run, words: list[str], told: str) -> None:
    assert run("--install-completion", *words) == (2, "", f"error: --install-completion: {told}\n")


def test_the_help_of_both_completion_options_names_the_shells(run: Run) -> None:
    words = " ".join(run("--help").stdout.split())
    shells = "bash, zsh, or fish. Without SHELL, use the current shell."
    assert f"--install-completion [SHELL] Install completion for {shells}" in words
    assert f"--show-completion [SHELL] Print the completion script for {shells}" in words
