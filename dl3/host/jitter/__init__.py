"""Gaps on cores: how long a worker would not have polled, what it would have cost, and who took the core."""
