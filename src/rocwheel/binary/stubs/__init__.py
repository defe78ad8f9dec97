"""Small ELF files that rocwheel writes: programs and libraries that stand in for others."""
