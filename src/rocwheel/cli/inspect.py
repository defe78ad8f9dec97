"""``rocwheel inspect``: what binaries are and what device code they carry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.filesize import decimal
from rich.table import Table

from rocwheel.binary.device_facts import BundleFacts, DeviceFacts, summarize_targets
from rocwheel.cli._app import app
from rocwheel.cli.output import (
    JsonOption,
    QuietOption,
    VerboseOption,
    messages,
    print_json,
    print_table,
    results,
    setup_logging,
)
from rocwheel.distributions.inspection import ElfFacts, FileFacts, inspect_paths
from rocwheel.errors import ProblemsError

__all__ = ["describe_bundle", "inspect"]


@app.command()
def inspect(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, folders and wheels.")],
    *,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Decompress bundles, to check their hashes, count kernels and tell what each target takes."
        ),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Tell what ELF files and device code are in files, folders and wheels: run paths, bundles, targets, kernels.

    Exit status 1 when device code is doubtful, such as bundles that readers take differently.

    Example: rocwheel inspect dist/*.whl
    """
    setup_logging(quiet=quiet, verbose=verbose)
    files = []
    for facts in inspect_paths(paths, deep=deep):
        files.append(facts)
        if not as_json and not facts.error:
            _print_file(facts, verbose=verbose)
    if as_json:
        print_json("inspect", 1, {"files": [_to_json(facts) for facts in files]})
    _finish(files, quiet=quiet)


def _finish(files: list[FileFacts], *, quiet: bool) -> None:
    problems = [problem for facts in files if facts.device for problem in facts.device.problems]
    if not quiet:
        for problem in problems:
            messages.print(f"warning: {problem}", markup=False)
    errors = [facts.error for facts in files if facts.error]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        subject = "Damaged files"
        raise ProblemsError(subject, errors)
    if problems:
        raise typer.Exit(1)


def _print_file(facts: FileFacts, *, verbose: bool) -> None:
    results.print(f"{facts.path}: {decimal(facts.size)}", markup=False)
    if facts.elf:
        _print_elf(facts.elf, verbose=verbose)
    if facts.device:
        _print_device(facts.device, verbose=verbose)


def _print_elf(elf: ElfFacts, *, verbose: bool) -> None:
    results.print(f"  {elf.kind} {elf.soname or ''}".rstrip(), markup=False)
    for label, value in (("RPATH", elf.rpath), ("RUNPATH", elf.runpath)):
        if value is not None:
            results.print(f"  {label} {value}", markup=False)
    if verbose:
        results.print(f"  NEEDED {' '.join(elf.needed)}", markup=False)


def _print_device(device: DeviceFacts, *, verbose: bool) -> None:
    number = len(device.bundles)
    count = f"{number} bundle{'' if number == 1 else 's'}"
    lead = count if device.container == "bundles" else device.container + (f", {count}" if number else "")
    wrappers = f", {device.wrappers} wrappers" if device.wrappers not in {0, number} else ""
    sizes = f", {decimal(device.size)}" + (
        f" ({decimal(device.raw_size)} decompressed)" if device.raw_size != device.size else ""
    )
    results.print(f"  {lead}{wrappers}{sizes}", markup=False)
    if verbose:
        for bundle in device.bundles:
            results.print(f"    {describe_bundle(bundle)}", markup=False)
    print_table(_target_table(device))


def describe_bundle(bundle: BundleFacts) -> str:
    """Return one line about a bundle: number, place, format and sizes."""
    kind = f"compressed, version {bundle.version}, {bundle.method}" if bundle.version else "plain"
    return f"bundle {bundle.number} at {bundle.offset:#x}: {kind}, {bundle.size} bytes, {bundle.raw_size} decompressed"


def _target_table(device: DeviceFacts) -> Table:
    table = Table("target", box=None, pad_edge=False, padding=(0, 2, 0, 2))
    for heading in ("size", "in the file", "kernels", "bundles", "missing from"):
        table.add_column(heading, justify="right")
    for target in summarize_targets(device):
        stored = "?" if target.stored_size is None else decimal(target.stored_size)
        kernels = "?" if target.kernels is None else str(target.kernels)
        row = (target.target, decimal(target.size), stored, kernels, str(target.bundles), str(target.missing or ""))
        table.add_row(*row)
    return table


def _to_json(facts: FileFacts) -> dict[str, Any]:
    document: dict[str, Any] = {"path": facts.path, "size": facts.size, "elf": msgspec.to_builtins(facts.elf)}
    document["error"] = str(facts.error) if facts.error else None
    document["device"] = None
    if facts.device:
        targets = summarize_targets(facts.device)
        common = [target.target for target in targets if not target.missing]
        document["device"] = {
            **msgspec.to_builtins(facts.device),
            "size": facts.device.size,
            "raw_size": facts.device.raw_size,
            "targets": msgspec.to_builtins(targets),
            "targets_in_all_bundles": common,
        }
    return document
