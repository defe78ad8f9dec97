"""What is wrong with finished packages: rules, findings, settings, baselines, SARIF."""
