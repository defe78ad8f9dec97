"""From placed packages to planned wheels: members, tags, metadata, console scripts."""
