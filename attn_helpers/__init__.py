"""Attention by hand: the small library behind the book's chapters."""

__version__ = "1.0.0"  # pyproject.toml reads it from here
