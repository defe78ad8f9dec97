"""How each tool spells a set of GPU targets."""
