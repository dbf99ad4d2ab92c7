"""Runs one trial: send, wait, read the counters of both programs, check the packet accounting."""
