"""How tests start Bazel."""

from __future__ import annotations

__all__ = ["STARTUP"]

STARTUP = ("--host_jvm_args=-XX:TieredStopAtLevel=1", "--host_jvm_args=-XX:+UseSerialGC")
"""Options that stand before the command: a server that lives for seconds has no use for what optimizes it."""
