"""Finds problems in finished packages. Contains the rules, findings, settings, baselines, and SARIF output."""
