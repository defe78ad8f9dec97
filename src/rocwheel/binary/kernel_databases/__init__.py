"""Files that keep kernels for a library to look up: SQLite databases of MIOpen and rocFFT, images of AOTriton."""
