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


class ShapedDrops(Reply):
    """Packets dropped by reason: see the verdicts shape_codel, shape_limit, shape_pool and shape_flushed."""

    codel: int
    limit: int
    pool: int
    flushed: int


class ShapedClass(Reply):
    """What was sent of a class, and how long it waited: delays[i] counts less than delay_us[i], the last one the rest."""

    packets: int
    bytes: int
    dropped: ShapedDrops
    delays: tuple[int, ...]


class Shaping(Reply):
    """The queues of a subscriber in one direction, and the worker that has them; class 0 is strict."""

    worker: int
    held: int
    delay_us: tuple[int, ...]
    classes: tuple[ShapedClass, ...]


class SubscriberDirection(Reply):
    """profile: None without one: nothing is policed; shaping: None: its packets do not wait."""

    profile: str | None
    parent: str | None = None
    counts: ColourCounts
    shaping: Shaping | None = None


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


class SubscriberJobStarted(Reply):
    """Methods 'subscribers.load' and 'subscribers.export'."""

    path: str


class SubscriberJob(Reply):
    """Method 'subscribers.job': the latest load or export; done: lines or subscribers; of: None: not known."""

    state: str  # none, running, done, failed
    what: str | None = None
    path: str | None = None
    phase: str | None = None
    done: int = 0
    of: int | None = None
    reason: str | None = None
    subscribers: int = 0
    seconds: float = 0.0
