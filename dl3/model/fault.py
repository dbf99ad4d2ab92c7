"""The one family of exceptions; the command line catches it once and prints its sentence."""


class Fault(Exception):
    """What happened, to what, and what to do about it, in one sentence."""


class UsageFault(Fault):
    """The person asked for something that cannot be; nothing was done."""
