"""Shell scripts: words, simple commands, and the calls of the old tool among these."""
