"""Long trials of rocwheel, run by hand: fuzzing, faults, corpora of public files, benchmarks; see README.md."""
