"""How fast and how light the book is, beside what one would use instead: `make bench`."""
