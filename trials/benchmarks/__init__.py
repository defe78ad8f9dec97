"""Benchmarks, run by hand: ``python -m trials.benchmarks [NAME...]``. Each prints Markdown tables."""
