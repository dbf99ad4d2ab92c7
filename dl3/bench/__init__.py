"""Runs measurements: starts the programs, samples them, compares them."""
