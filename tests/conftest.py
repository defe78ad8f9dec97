"""What holds for all tests."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

pytest_plugins = [
    "tests.support.audited_wheels",
    "tests.support.command_line",
    "tests.support.dask_clusters",
    "tests.support.device_files",
    "tests.support.faulty_server",
    "tests.support.machines",
    "tests.support.repair_wheels",
    "tests.support.reply_server",
    "tests.support.s3_server",
    "tests.support.sample_sdk",
    "tests.support.tools",
]

# Hundreds of tests start processes; each would compile all that it imports anew, for seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A deadline would make a busy machine fail a property that holds.
settings.register_profile("rocwheel", deadline=None)
settings.load_profile("rocwheel")

# What a shell runs in the background ignores interrupts, and its children do: interrupted commands would go on.
signal.signal(signal.SIGINT, signal.default_int_handler)
