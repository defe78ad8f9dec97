"""Compare the tables of GPUs, products, libraries, and names in JAX with their public sources; print what is missing.

Usage: python -m scripts.check_tables [--source NAME=PATH]... [CHECK]...

Sources are read over HTTPS. ``--source`` reads a local copy instead. ``check_tables.toml`` has the URLs of the sources,
and the reasons for differences that are right. The exit status is 1 if nothing explains a difference, and 2 if a
source can't be read.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from rocwheel.core.errors import InputError, read_error
from rocwheel.core.messages import count
from scripts.check_tables.checks import compare, load_settings, make_checks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scripts.check_tables.checks import Check, Difference, Settings

_LARGEST = 16 * 1024 * 1024
_SECONDS = 60


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the checks, print the report, and return the exit status."""
    settings = load_settings()
    checks = {check.name: check for check in make_checks(settings)}
    options = _parse_arguments(arguments, list(checks), list(settings.sources))
    places = {**settings.sources, **dict(options.source)}
    chosen = [checks[name] for name in options.check or checks]
    unexplained = failed = 0
    for check in chosen:
        print(f"{check.name}: {check.table}, and {' with '.join(check.sources)}")
        try:
            differences = _differences(check, settings, places)
        except InputError as e:
            print(f"  error: {e}", file=sys.stderr)
            failed += 1
            continue
        unexplained += sum(not one.reason for one in differences)
        reasons = [one.reason for one in settings.explained if one.check == check.name]
        print("".join(f"  {line}\n" for line in report_lines(differences, reasons)), end="")
    found = count(unexplained, "unexplained difference")
    print(f"{count(len(chosen), 'check')}, {found}, {count(failed, 'unreadable source')}")
    return 2 if failed else int(unexplained > 0)


def _parse_arguments(arguments: Sequence[str] | None, checks: list[str], sources: list[str]) -> argparse.Namespace:
    def parse_source(text: str) -> tuple[str, str]:
        name, equals, path = text.partition("=")
        if name not in sources or not (equals and path):
            message = f"{text!r} isn't NAME=PATH; the names are {', '.join(sources)}"
            raise argparse.ArgumentTypeError(message)
        return name, path

    parser = argparse.ArgumentParser(prog="python -m scripts.check_tables", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("check", nargs="*", metavar="CHECK", help=f"only these checks: {', '.join(checks)}")
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        type=parse_source,
        metavar="NAME=PATH",
        help="read a source from a file (repeatable)",
    )
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.check if name not in checks]:
        parser.error(f"no check is called {', '.join(unknown)}; the checks are {', '.join(checks)}")
    return options


def _differences(check: Check, settings: Settings, places: Mapping[str, str]) -> list[Difference]:
    source = check.read_sources([read_place(places[name]) for name in check.sources])
    explained = [one for one in settings.explained if one.check == check.name]
    return compare(check.read_table(source), source, explained)


def read_place(place: str) -> str:
    """Return the text at an HTTPS URL, or in a file. Raises `InputError` if it can't be read or isn't UTF-8."""
    try:
        data = _fetch(place) if "://" in place else Path(place).read_bytes()
    except URLError as e:
        raise InputError(place, f"can't be read ({e.reason})", remedy="Give a local copy with --source.") from e
    except OSError as e:
        raise read_error(place, e) from e
    if len(data) > _LARGEST:
        raise InputError(place, "is too large", expected=f"at most {_LARGEST} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        raise InputError(place, f"isn't text ({e})", expected="UTF-8") from e


def _fetch(url: str) -> bytes:
    _require_https(url)
    request = Request(url, headers={"User-Agent": "rocwheel-check-tables"})  # noqa: S310 (the scheme is checked)
    with urlopen(request, timeout=_SECONDS) as response:  # noqa: S310 (the scheme is checked)  # nosec B310
        _require_https(response.url)  # a server may redirect to another address
        data: bytes = response.read(_LARGEST + 1)
    return data


def _require_https(url: str) -> None:
    if urlsplit(url).scheme != "https":
        raise InputError(url, "isn't a secure address", expected="a URL that begins with https://")


def report_lines(differences: Sequence[Difference], known_reasons: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of the report: a line for each unexplained difference, and a line for each reason."""
    if not differences:
        yield "no differences"
    reasons = defaultdict[str, list[str]](list)
    for one in differences:
        if one.reason:
            reasons[one.reason].append(one.name)
        elif one.table is None:
            yield f"missing in the table: {_item(one.name, one.source)}"
        elif one.source is None:
            yield f"missing in the source: {_item(one.name, one.table)}"
        else:
            yield f"different: {one.name}: the table has {one.table!r}, the source {one.source!r}"
    for reason, names in reasons.items():
        shown = ", ".join(names[:3]) + (f", and {len(names) - 3} more" if len(names) > 3 else "")
        yield f"explained: {shown}: {reason}"
    yield from (f"explains nothing any more: {reason}" for reason in known_reasons if reason not in reasons)


def _item(name: str, value: str | None) -> str:
    return f"{name} ({value})" if value else name


if __name__ == "__main__":
    sys.exit(main())
