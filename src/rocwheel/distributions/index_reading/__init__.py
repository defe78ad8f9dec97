"""Reading of package indexes of strangers, from any server: pages in both forms, and what of them may be trusted."""
