"""Streams as people write them in a file or in a campaign; what each means, dl3gen judges."""

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

STREAMS_WANTED = "a list of streams is wanted, each with 'from', 'to' and what dl3gen's guide names"


def stream_of(written: Mapping[str, object], where: object) -> Stream:
    """One of them, or a error that begins with where it stands."""
    try:
        stream = Stream.model_validate(written)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageFault(f"{where}: '{first['loc'][0]}' of a stream: {first['msg']}") from error
    if stream.is_replay and written.get("stamp") is not True:
        raise UsageFault(
            f"{where}: a stream replays {written['pcap']}, and nobody can tell what was lost of frames without a "
            "number: give it 'stamp: true'"
        )
    return stream


def parsed_streams(written: Iterable[Mapping[str, object]], where: object) -> tuple[Stream, ...]:
    """All of them."""
    return tuple(stream_of(each, where) for each in written)


class Words(yaml.BaseLoader):
    """Words only, none of which no text can hold."""

    def construct_scalar(self, node: ScalarNode) -> str:
        """One of them, or a error with its line."""
        word = str(super().construct_scalar(node))
        if bad := unprintable(word):
            raise yaml.MarkedYAMLError(problem=f"the text contains {bad}", problem_mark=node.start_mark)
        return word


def read_streams(path: Path) -> tuple[Stream, ...]:
    """The streams in a YAML file: a list, or a map with the key 'streams'."""
    try:
        words = yaml.load(read_bounded(path, MOST_BYTES, "a file of streams").decode(), Loader=Words)  # noqa: S506 - it makes words only
        value = typed(words)  # to YAML 1.1 itself 12:34:56:00:00:01 is a number and 2026-13-01 a mistake
    except OSError as error:
        raise UsageFault(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageFault(f"{path} is no text: byte {error.start} is not UTF-8") from error
    except yaml.YAMLError as error:
        raise UsageFault(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise UsageFault(f"{path} goes too deep: {STREAMS_WANTED}") from error
    if isinstance(value, dict):
        value = value.get("streams")
    if not isinstance(value, list) or not value or not all(isinstance(row, dict) for row in value):
        raise UsageFault(f"{path}: {STREAMS_WANTED}")
    return parsed_streams(value, path)
