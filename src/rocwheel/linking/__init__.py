"""How libraries are found: the dynamic loader, system libraries, and the rule for run paths."""
