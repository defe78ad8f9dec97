"""Benchmarks, run by hand: ``python -m benchmarks [NAME...]``. Each prints Markdown tables."""
