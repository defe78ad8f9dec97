"""How the command line begins and ends: interrupts, outputs that take only a part, encodings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rocwheel.demo import SAMPLE_SDK
from tests.support.command_line import rocwheel

pytestmark = pytest.mark.slow

INTERRUPT = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"


def test_an_interrupt_while_loading_the_command_line_exits_silently(tmp_path: Path) -> None:
    # click is imported by the command line alone.
    (tmp_path / "click.py").write_text(INTERRUPT)
    done = rocwheel("--version", environ={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize(("options", "said"), [([], ["interrupted"]), (["-q"], [])], ids=["said", "quiet"])
def test_an_interrupt_during_work_exits_with_status_130_and_leaves_no_files(
    tmp_path: Path, options: list[str], said: list[str]
) -> None:
    dest = tmp_path / "dest"
    code = (
        "import sys, rocwheel.build.building as build\n"
        "def interrupt(*_, **__):\n import _thread, time\n _thread.interrupt_main()\n time.sleep(60)\n"
        "build.write_sdist = interrupt\n"
        f"sys.argv[1:] = ['build', *{options!r}, '--artifact-dir', {str(SAMPLE_SDK)!r}, '--dest-dir', {str(dest)!r}]\n"
        "from rocwheel.__main__ import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1:]) == (130, "", said)
    assert [path for path in dest.rglob("*") if path.name.startswith(".")] == []


def test_an_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nos._exit(7)\n")
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "import os; os.execv(sys.executable, [sys.executable, '-m', 'rocwheel', '--version'])"
    )
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=environ).returncode == 7


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_truncated_output_is_reported(tmp_path: Path, unbuffered: str) -> None:
    # Given a file that takes 1000 bytes, as a full disk would
    limit = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
    code = f"{limit} os.execv(sys.executable, [sys.executable, '-m', 'rocwheel', 'targets', 'list', '--json'])"
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=out, stderr=subprocess.PIPE, text=True, check=False, env=environ
        )
    assert (tmp_path / "out").stat().st_size == 1000
    assert done.stderr == "error: the output: can't be written (File too large). Check its destination.\n"
    assert done.returncode == 1


@pytest.mark.parametrize("full", [["stdout"], ["stderr"], ["stdout", "stderr"]], ids=" ".join)
def test_an_error_that_cannot_be_printed_keeps_its_exit_status(full: list[str]) -> None:
    command = [sys.executable, "-m", "rocwheel", "audit", "absent", "--json"]
    with Path("/dev/full").open("wb") as disk:
        streams = {name: disk.fileno() if name in full else subprocess.PIPE for name in ("stdout", "stderr")}
        done = subprocess.run(command, text=True, check=False, stdout=streams["stdout"], stderr=streams["stderr"])
    assert done.returncode == 2
    assert "stdout" in full or json.loads(done.stdout)["errors"][0]["source"] == "absent"
    assert "stderr" in full or done.stderr.startswith("error: absent: doesn't exist;")


def test_a_removed_working_directory_is_reported(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    command = [sys.executable, "-m", "rocwheel", "audit", "x"]
    gone.mkdir()
    code = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); os.execv({sys.executable!r}, {command!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "error: the working directory: was removed or moved. Change to an existing folder.\n",
    )


def test_a_closed_standard_output_is_not_an_error() -> None:
    code = "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, '-m', 'rocwheel', '--version'])"
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_table_escapes_characters_that_the_encoding_lacks(tmp_path: Path) -> None:
    _make_artifact(tmp_path)
    done = rocwheel("artifacts", "list", "-v", str(tmp_path), environ={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, "lib/caf\\xe9.txt" in done.stdout) == (0, True)


def test_json_is_utf8_regardless_of_the_encoding(tmp_path: Path) -> None:
    _make_artifact(tmp_path)
    done = rocwheel("artifacts", "list", "-v", "--json", "-q", str(tmp_path), environ={"PYTHONIOENCODING": "ascii"})
    paths = [entry["path"] for artifact in json.loads(done.stdout)["artifacts"] for entry in artifact["entries"]]
    assert "lib/café.txt" in paths


@pytest.mark.parametrize("environ", [{}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}], ids=str)
@pytest.mark.parametrize("option", [[], ["--json"]], ids=["table", "json"])
def test_a_folder_name_that_is_not_utf8_is_shown_with_escapes(
    tmp_path: Path, option: list[str], environ: dict[str, str]
) -> None:
    dest = tmp_path / os.fsdecode(b"caf\xe9")
    command = ["build", "--artifact-dir", str(SAMPLE_SDK), "--dest-dir", str(dest), *option]
    done = rocwheel(*command, environ=environ)
    assert done.returncode == 0
    assert "caf\\udce9/dist/rocm-7.0.0.tar.gz" in done.stdout
    assert (dest / "dist/rocm-7.0.0.tar.gz").exists()


def _make_artifact(folder: Path) -> None:
    artifact = folder / "core-hip_lib_generic"
    (artifact / "stage/lib").mkdir(parents=True)
    (artifact / "artifact_manifest.txt").write_text("stage\n")
    (artifact / "stage/lib/café.txt").write_text("x")
