"""Holds repaired wheels against the real dynamic loader: what it found before a repair, it has to find after it.

For each wheel two file systems are made, one with the original's files and one with the repaired one's. In a chroot of
each, with stub libraries where old run paths led and where the SDK's packages are, the loader tells what it finds.
"""
