"""Parses YAML into lists, maps and strings, with the line of each. Types are decided later, by key."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from dl3.model.fault import UsageFault
from dl3.model.files import unprintable

MOST_BYTES = 1 << 20
MOST_LEVELS = 20
NOTHING = ("", "~", "null")
SHOWN = 40  # maximum length of a quoted value in an error

Place = tuple[str | int, ...]  # keys and indexes from the root: ('cases', 0, 'frames')


@dataclass(frozen=True)
class Tree:
    """The contents of a file. All scalars are strings as written, or None."""

    path: Path
    value: object
    lines: dict[Place, int] = field(default_factory=dict)

    def line(self, place: Place) -> int:
        """The line of an element, or of the closest element that contains it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def fault(self, place: Place, sentence: str) -> UsageFault:
        """An error with file and line."""
        return UsageFault(f"{self.path}, line {self.line(place)}: {sentence}")


class Composer(yaml.SafeLoader):
    """A loader that rejects aliases, which expand a file, and limits the nesting depth."""

    levels = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        """Check for aliases and count nesting levels."""
        if self.check_event(yaml.AliasEvent):
            raise self.refused("aliases ('*') are not supported")
        self.levels += 1
        if self.levels > MOST_LEVELS:
            raise self.refused(f"more than {MOST_LEVELS} levels")
        node = super().compose_node(parent, index)
        self.levels -= 1
        return node

    def refused(self, why: str) -> yaml.MarkedYAMLError:
        """An error at the next event."""
        peek: Callable[[], Any] = self.peek_event
        return yaml.MarkedYAMLError(problem=why, problem_mark=peek().start_mark)


def shown(value: object) -> str:
    """A value as it is quoted in an error message."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if value is None:
        return "nothing"
    text = " ".join(str(value).split())
    return f"'{text if len(text) <= SHOWN else text[:SHOWN] + '...'}'"


def plain(node: Node, place: Place, tree: Tree) -> object:
    """The value of a node; records its lines in the tree."""
    tree.lines[place] = node.start_mark.line + 1
    if isinstance(node, SequenceNode):
        return [plain(item, (*place, i), tree) for i, item in enumerate(node.value)]
    if isinstance(node, MappingNode):
        return dict(pairs(node, place, tree))
    if bad := unprintable(str(node.value)):
        raise tree.fault(place, f"the text contains {bad}")
    is_plain_word = isinstance(node, ScalarNode) and node.style is None
    return None if is_plain_word and node.value in NOTHING else str(node.value)


def parted(node: MappingNode) -> ScalarNode | None:
    """The key in a flow map whose value contains commas: YAML reads {lcores: 1,1,2} as the keys lcores, 1 and 2."""
    for (key, value), (after, nothing) in pairwise(node.value if node.flow_style else ()):
        if not all(isinstance(each, ScalarNode) for each in (key, value, after, nothing)):
            continue
        if value.value and after.value.isdigit() and (nothing.value, nothing.style) == ("", None):
            return cast(ScalarNode, key)
    return None


def pairs(node: MappingNode, place: Place, tree: Tree) -> Iterator[tuple[str, object]]:
    """The items of a map. Keys are strings and unique."""
    if key := parted(node):
        tree.lines[place] = key.start_mark.line + 1
        raise tree.fault(place, f"{shown(key.value)}: a value with commas must be in quotes, like '1,1,2'")
    seen: set[str] = set()
    for key, value in node.value:
        tree.lines[place] = min(tree.lines[place], key.start_mark.line + 1)
        if not isinstance(key, ScalarNode):
            raise tree.fault(place, "a key is a list or a map, expected a word")
        if bad := unprintable(key.value):
            raise tree.fault(place, f"a key contains {bad}")
        below = (*place, key.value)
        if key.value in seen:
            tree.lines[below] = key.start_mark.line + 1
            raise tree.fault(below, f"the key {shown(key.value)} appears twice: leave one out")
        seen.add(key.value)
        found = plain(value, below, tree)
        tree.lines[below] = key.start_mark.line + 1
        yield key.value, found


def parse(path: Path, content: bytes) -> Tree:
    """Parse the contents of a file; UsageFault for the first error. Pure."""
    if len(content) > MOST_BYTES:
        raise UsageFault(f"{path} has {len(content):,} bytes: a campaign has {MOST_BYTES:,} at most")
    tree = Tree(path, None)
    try:
        loader = Composer(content.decode("utf-8"))
        node = loader.get_single_node()
    except UnicodeDecodeError as error:
        raise UsageFault(f"{path} is not text: byte {error.start} is not UTF-8") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        why = " ".join((error.problem or error.context or "something is wrong").split())
        raise UsageFault(f"{path}, line {line}: invalid YAML: {why}") from error
    except yaml.YAMLError as error:
        raise UsageFault(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    return Tree(path, plain(node, (), tree) if node else None, tree.lines)
