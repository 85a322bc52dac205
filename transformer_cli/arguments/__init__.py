"""One file per command: its arguments and options, read before anything heavy is loaded, and the call they end in."""
