"""Replies of dl3d's methods about access lists. Fields not declared here are kept unchanged."""

from dl3.control.replies import Reply


class AclCount(Reply):
    """What a rule, or the end of a list, has matched."""

    packets: int
    bytes: int


class AclRule(AclCount):
    """A rule as text; red: what its policer has found to be above the rate, None without one."""

    name: str | None
    rule: str
    red: AclCount | None = None


class AclList(Reply):
    """A list with a page of its rules, and the start of the next one; source: "acl", or "tc" for Linux's filters."""

    name: str
    source: str
    n_rules: int
    build_s: float
    default: str
    rest: AclCount
    rules: tuple[AclRule, ...]
    next: int | None


class AclUse(Reply):
    """Where a list is used; exists: whether the interface does."""

    interface: str
    direction: str
    list: str
    exists: bool


class Acls(Reply):
    """Method 'acls'."""

    lists: tuple[AclList, ...]
    use: tuple[AclUse, ...]


class AclsChanged(Reply):
    """Method 'acl.change': how many lists and uses there are now."""

    lists: int
    uses: int


class AclReason(Reply):
    """A rule that does not match, and the first condition that differs."""

    number: int
    name: str | None
    differs: str | None


class AclDecision(Reply):
    """Method 'acl.check'. number: of the rule that decides; None: no rule does."""

    list: str
    do: str
    number: int | None
    name: str | None
    rule: str | None
    before: tuple[AclReason, ...]
