"""The page of an index that people read: what there is, and what to install for which GPU."""
