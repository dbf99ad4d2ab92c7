"""The host machine: its properties, and temporary changes to it that are undone."""
