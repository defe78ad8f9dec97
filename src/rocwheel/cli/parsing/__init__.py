"""How a command line is read: the root and its groups, options of several commands, and what a shell offers."""
