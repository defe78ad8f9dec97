"""Text that anybody may have written, parsed: JSON, TOML and Python."""
