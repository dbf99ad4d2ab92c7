"""The tuning of a machine: a value that can be printed, saved, and made for a recorded machine."""
