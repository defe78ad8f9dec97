"""The commands that `trials.benchmarks.commands` measures, each on four sizes of input, with its floor and rivals."""
