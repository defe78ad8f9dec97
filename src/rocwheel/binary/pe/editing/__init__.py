"""Changes to DLLs and programs of Windows: in place, and with parts that move in the file."""
