"""One line in, one line out."""
