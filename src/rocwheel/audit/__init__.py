"""Finds problems in finished packages: rules, findings, settings, baselines, SARIF."""
