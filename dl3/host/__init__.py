"""The machine: what it has, what is changed on it for a while, and undone."""
