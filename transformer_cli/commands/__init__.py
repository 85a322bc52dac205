"""One file per command: the function that ``tfm NAME`` calls, and how its report is printed."""
