"""``rocwheel demo``: the main job on a sample SDK."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rocwheel.binary.platform import Platform
from rocwheel.cli.app import app
from rocwheel.cli.options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.cli.output import messages, print_json, setup_logging
from rocwheel.cli.parameters import option
from rocwheel.cli.plan import print_distributions
from rocwheel.cli.progress import make_progress
from rocwheel.cli.text import print_line, print_text
from rocwheel.demo import DemoReport, run_demo


@app.command()
def demo(
    dest_dir: Annotated[Path, shared("--dest-dir", "Write packages, index and environment to this folder.")] = Path(
        "demo"
    ),
    platform: Annotated[
        Platform,
        option(
            "--platform",
            help="Take the sample SDK for this system. That for Windows is installed by uv and not tested.",
        ),
    ] = Platform.LINUX,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Build, index, install and self-test the sample SDK that ships with rocwheel.

    Example: rocwheel demo --dest-dir /tmp/rocwheel-demo
    """
    setup_logging(quiet=quiet, verbose=verbose)
    try:
        report = run_demo(dest_dir, platform=platform, progress=make_progress(quiet=quiet))
    except KeyboardInterrupt:
        messages.print(f"what is finished stays in {dest_dir}", markup=False)
        raise
    if json:
        print_json("demo", 1, report)
        return
    if not quiet:
        print_text(report.test_output)
    print_distributions(report.build.distributions)
    print_line(f"index:       {report.index}")
    print_line(f"environment: {report.environment}")
    print_line(f"install it yourself: {_command(report)}")


def _command(report: DemoReport) -> str:
    """Return the command that installs what a demo made."""
    if report.platform is Platform.LINUX:
        return f"pip install '{report.requirement}' --index-url {report.index}"
    words = "--python-platform x86_64-pc-windows-msvc --target FOLDER"
    return f"uv pip install {words} '{report.requirement}' --index-url {report.index}"
