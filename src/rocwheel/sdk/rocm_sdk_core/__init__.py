"""Console scripts for the programs of the ROCm core package."""
