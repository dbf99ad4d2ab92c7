"""Streams in a file or a campaign; only partly validated here, the rest by dl3gen."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml
from pydantic import ValidationError
from yaml.nodes import ScalarNode

from dl3.campaign.lines import MOST_BYTES
from dl3.campaign.written import typed
from dl3.model.fault import UsageFault
from dl3.model.files import read_bounded, unprintable
from dl3.model.stream import Stream

STREAMS_WANTED = "expected a list of streams, each with 'from', 'to' and the keys in dl3gen's guide"


def stream_of(written: Mapping[str, object], where: object) -> Stream:
    """Parse one stream; errors start with its location."""
    try:
        stream = Stream.model_validate(written)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageFault(f"{where}: '{first['loc'][0]}' of a stream: {first['msg']}") from error
    if stream.is_replay and written.get("stamp") is not True:
        raise UsageFault(
            f"{where}: a stream replays {written['pcap']}, and loss cannot be measured for frames without a sequence "
            "number: set 'stamp: true'"
        )
    return stream


def parsed_streams(written: Iterable[Mapping[str, object]], where: object) -> tuple[Stream, ...]:
    """Parse all streams."""
    return tuple(stream_of(each, where) for each in written)


class Words(yaml.BaseLoader):
    """A YAML loader that returns strings only and rejects unprintable characters."""

    def construct_scalar(self, node: ScalarNode) -> str:
        """A string, or an error with its line."""
        word = str(super().construct_scalar(node))
        if bad := unprintable(word):
            raise yaml.MarkedYAMLError(problem=f"the text contains {bad}", problem_mark=node.start_mark)
        return word


def read_streams(path: Path) -> tuple[Stream, ...]:
    """Read the streams of a YAML file: a list, or a map with the key 'streams'."""
    try:
        words = yaml.load(read_bounded(path, MOST_BYTES, "a file of streams").decode(), Loader=Words)  # noqa: S506 - it makes words only
        value = typed(words)  # YAML 1.1 would read 12:34:56:00:00:01 as a number and reject 2026-13-01
    except OSError as error:
        raise UsageFault(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageFault(f"{path} is not text: byte {error.start} is not UTF-8") from error
    except yaml.YAMLError as error:
        raise UsageFault(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise UsageFault(f"{path} is nested too deeply: {STREAMS_WANTED}") from error
    if isinstance(value, dict):
        value = value.get("streams")
    if not isinstance(value, list) or not value or not all(isinstance(row, dict) for row in value):
        raise UsageFault(f"{path}: {STREAMS_WANTED}")
    return parsed_streams(value, path)
