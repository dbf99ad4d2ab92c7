"""Replies of dl3d's methods about subscribers. Fields not declared here are kept unchanged."""

from dl3.control.replies import Reply


class ColourCount(Reply):
    """Packets of a colour, and their bytes as the profile counts them."""

    packets: int
    bytes: int


class ColourCounts(Reply):
    """Of one direction."""

    green: ColourCount
    yellow: ColourCount
    red: ColourCount


class SubscriberDirection(Reply):
    """profile: None without one: nothing is policed."""

    profile: str | None
    counts: ColourCounts


class Subscriber(Reply):
    """Method 'subscribers.find'; of_file: the configuration file names it."""

    name: str
    number: int
    of_file: bool
    addresses: tuple[str, ...]
    interfaces: tuple[str, ...]
    up: SubscriberDirection
    down: SubscriberDirection


class SubscriberPage(Reply):
    """Method 'subscribers.list'."""

    subscribers: tuple[Subscriber, ...]
    next: int | None


class ProfileUse(Reply):
    """A profile as text, and how many directions of subscribers have it."""

    profile: str
    users: int


class SubscriberUsage(Reply):
    """Method 'subscribers'."""

    subscribers: int
    profiles: int
    addresses: int
    interfaces: int
    bytes: int
    lengths4: tuple[int, ...]
    lengths6: tuple[int, ...]
    batches: int
    changes: int
    profile_list: tuple[ProfileUse, ...]


class SubscribersChanged(Reply):
    """Method 'subscribers.change'."""

    applied: int


class SubscribersFile(Reply):
    """Methods 'subscribers.load' and 'subscribers.export': how many there are now, and how long it took."""

    subscribers: int
    seconds: float
