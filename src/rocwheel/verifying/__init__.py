"""Whether files are still what a manifest, a RECORD or the pages of an index say."""
