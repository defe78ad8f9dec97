"""Faults of disks, file systems and limits, and kills, at each call of the commands that write; see RESULTS.md."""
