"""Which run paths the files of a repaired wheel get: the edits, what they keep, and which of them take nothing away."""
