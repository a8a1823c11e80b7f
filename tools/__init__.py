"""What `make` calls: python -m tools COMMAND (also on Windows, where there is no make)."""
