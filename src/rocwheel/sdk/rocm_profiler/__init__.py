"""Console scripts for the programs of the ROCm profiler package."""
