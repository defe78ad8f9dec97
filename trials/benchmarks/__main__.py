"""Runs benchmarks by name, or all of them."""

from __future__ import annotations

import importlib
import sys

__all__ = ["NAMES", "main"]

NAMES = (
    "build",
    "growth",
    "cache",
    "forms",
    "commands",
    "worst",
    "memory",
    "index",
    "sdk",
    "device_code",
    "repair",
    "retarget",
    "host_file",
    "kpack_levels",
    "split",
    "audit",
    "report",
    "stores",
    "cluster",
)


def main(names: list[str]) -> int:
    """Run the benchmarks of these names, or all; return the exit status."""
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    for name in names or NAMES:
        print(f"\n## {name}\n", flush=True)
        importlib.import_module(f"trials.benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
