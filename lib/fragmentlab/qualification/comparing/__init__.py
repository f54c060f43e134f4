"""Two runs of one subject compared: what moved, and the verdict."""
