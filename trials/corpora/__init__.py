"""Public files by the thousand: what rocwheel says of them, beside what other tools and the real loader say."""
