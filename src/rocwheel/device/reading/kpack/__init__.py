"""Device code in kpack archives: of an archive itself, and of the libraries whose markers name it."""
