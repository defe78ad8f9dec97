"""The commands that `benchmarks.commands` measures, each on inputs of four sizes, with its floor and other tools."""
