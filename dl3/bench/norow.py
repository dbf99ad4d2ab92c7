"""A row that is missing here and now."""

from dl3.model.fault import Fault


class NoRow(Fault):
    """A comparison that is not possible here and now; the others continue."""
