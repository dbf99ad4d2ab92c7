"""Checks of a machine, one file each."""
