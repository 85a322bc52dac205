"""Claims about attention and its training, each shown by a number and a picture: ``tfm demo``."""
