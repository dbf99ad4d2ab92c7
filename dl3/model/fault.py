"""The exception family of dl3. The command line catches it in one place and prints its message."""


class Fault(Exception):
    """An error. The message is one sentence: what happened, to what, and what to do about it."""


class AbsentFault(Fault):
    """A program cannot be reached; it may not be running."""


class UsageFault(Fault):
    """Invalid user input; nothing was done."""
