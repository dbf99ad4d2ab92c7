"""What the whole-wired tests share."""
