"""What Linux says about the machine: one value, read from a tree of files."""
