"""One trial: send, wait, read both sides, check the law."""
