"""What commands print: results to standard output, messages to standard error."""
