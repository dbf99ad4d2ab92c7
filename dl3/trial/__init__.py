"""One trial: send, wait, read the counters of both programs, check the accounting."""
