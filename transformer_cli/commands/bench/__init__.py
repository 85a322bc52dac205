"""What `tfm bench` measures."""
