"""Turns a campaign file into a plan and reports all errors in the file. Starts nothing."""
