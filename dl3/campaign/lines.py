"""YAML as lists, maps and words, with the line of each: what a word means, its key decides."""

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
SHOWN = 40  # characters of what was found

Place = tuple[str | int, ...]  # keys and numbers on the way down: ('cases', 0, 'frames')


@dataclass(frozen=True)
class Tree:
    """A file's contents; all scalars are words as they were written, or None."""

    path: Path
    value: object
    lines: dict[Place, int] = field(default_factory=dict)

    def line(self, place: Place) -> int:
        """Where it stands, or what it belongs to."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def fault(self, place: Place, sentence: str) -> UsageFault:
        """The error, with file and line."""
        return UsageFault(f"{self.path}, line {self.line(place)}: {sentence}")


class Composer(yaml.SafeLoader):
    """Refuses what makes a file longer than it looks, and lets no file go deeper than a person would."""

    levels = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        """One more level, no alias."""
        if self.check_event(yaml.AliasEvent):
            raise self.refused("an alias ('*') is not known here, write it out")
        self.levels += 1
        if self.levels > MOST_LEVELS:
            raise self.refused(f"more than {MOST_LEVELS} levels")
        node = super().compose_node(parent, index)
        self.levels -= 1
        return node

    def refused(self, why: str) -> yaml.MarkedYAMLError:
        """What comes next is not for us."""
        peek: Callable[[], Any] = self.peek_event
        return yaml.MarkedYAMLError(problem=why, problem_mark=peek().start_mark)


def shown(value: object) -> str:
    """What was found, as a sentence can hold it."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if value is None:
        return "nothing"
    text = " ".join(str(value).split())
    return f"'{text if len(text) <= SHOWN else text[:SHOWN] + '...'}'"


def plain(node: Node, place: Place, tree: Tree) -> object:
    """The value of a node; its lines go into the tree."""
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
    """The key in braces whose value its commas have parted: YAML reads {lcores: 1,1,2} as the keys lcores, 1 and 2."""
    for (key, value), (after, nothing) in pairwise(node.value if node.flow_style else ()):
        if not all(isinstance(each, ScalarNode) for each in (key, value, after, nothing)):
            continue
        if value.value and after.value.isdigit() and (nothing.value, nothing.style) == ("", None):
            return cast(ScalarNode, key)
    return None


def pairs(node: MappingNode, place: Place, tree: Tree) -> Iterator[tuple[str, object]]:
    """Keys are words, each stands once."""
    if key := parted(node):
        tree.lines[place] = key.start_mark.line + 1
        raise tree.fault(place, f"{shown(key.value)}: a value with commas was found, put it into quotes like '1,1,2'")
    seen: set[str] = set()
    for key, value in node.value:
        tree.lines[place] = min(tree.lines[place], key.start_mark.line + 1)
        if not isinstance(key, ScalarNode):
            raise tree.fault(place, "a key is a list or a map, and a word was wanted")
        if bad := unprintable(key.value):
            raise tree.fault(place, f"a key contains {bad}")
        below = (*place, key.value)
        if key.value in seen:
            tree.lines[below] = key.start_mark.line + 1
            raise tree.fault(below, f"the key {shown(key.value)} stands there twice: leave one out")
        seen.add(key.value)
        found = plain(value, below, tree)
        tree.lines[below] = key.start_mark.line + 1
        yield key.value, found


def parse(path: Path, content: bytes) -> Tree:
    """The tree that a file's bytes are, or one UsageFault. Pure."""
    if len(content) > MOST_BYTES:
        raise UsageFault(f"{path} has {len(content):,} bytes: a campaign has {MOST_BYTES:,} at most")
    tree = Tree(path, None)
    try:
        loader = Composer(content.decode("utf-8"))
        node = loader.get_single_node()
    except UnicodeDecodeError as error:
        raise UsageFault(f"{path} is no text: byte {error.start} is not UTF-8") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        why = " ".join((error.problem or error.context or "something is wrong").split())
        raise UsageFault(f"{path}, line {line}: this is no YAML: {why}") from error
    except yaml.YAMLError as error:
        raise UsageFault(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    return Tree(path, plain(node, (), tree) if node else None, tree.lines)
