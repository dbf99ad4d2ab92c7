"""The verb 'dl3 report': records in, one HTML page out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dl3.cli.printing import err, out, print_json
from dl3.model.fault import Fault, UsageFault
from dl3.model.trial import Throughput
from dl3.record.journal import now
from dl3.record.reader import Record, read
from dl3.report.by_frame import is_at_least
from dl3.report.page import page
from dl3.report.results import Record as Entry
from dl3.report.results import Results, gather
from dl3.report.summary import sentence
from dl3.report.texts import words_in
from dl3.report.words import Language


def write(path: Path, text: str) -> None:
    """Write the page whole or not at all."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise Fault(
            f"the report {path} cannot be written: {error.strerror}; name another file with --output"
        ) from error


def answer(search: Throughput) -> dict[str, object]:
    """The answer of a search for programs."""
    derived = {"l1_bps": search.l1_bps, "line_share": search.line_share, "is_at_least": is_at_least(search)}
    return search.model_dump(exclude={"facts", "kind"}) | derived


def summary(path: Path, results: Results, left_out: Sequence[str]) -> dict[str, object]:
    """What --json prints."""
    return {
        "page": str(path),
        "throughput": [answer(search) for search in results.searches],
        "trials": len(results.trials),
        "invalid": len(results.invalid),
        "left_out": list(left_out),
    }


def refuse_empty(records: Sequence[Record]) -> None:
    """A page without a single record helps nobody."""
    if not any(record.trials or record.answers for record in records):
        names = ", ".join(str(record.path) for record in records)
        raise UsageFault(
            f"no trial and no answer in {names}: name a file that 'dl3 bench throughput' or 'latency' wrote"
        )


def refuse_record(output: Path, records: Sequence[Path]) -> None:
    """A page never takes the place of what it was made from."""
    if output.exists() and any(output.samefile(record) for record in records):
        raise UsageFault(f"--output {output} is one of the records: name another file for the page")


def report(
    record: Annotated[list[Path], typer.Argument(help="Files that 'dl3 bench throughput' or 'latency' wrote.")],
    output: Annotated[
        Path | None, typer.Option(help="The page; the first record's name with .html without it.")
    ] = None,
    lang: Annotated[Language, typer.Option(help="The page's language.")] = Language.EN,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make one HTML page of records: results, charts, the machine. It loads nothing, works offline and prints well.

    Example: dl3 report build/records/throughput.jsonl --lang zh
    """
    records = [read(path) for path in record]
    left_out = [text for one in records for text in one.left_out]
    for text in left_out:
        err.print(f"dl3: {text}", markup=False, highlight=False, soft_wrap=True)
    refuse_empty(records)
    found: list[Entry] = []
    for one in records:
        found += [*one.answers, *one.trials]
    path = output or record[0].with_suffix(".html")
    refuse_record(path, record)
    write(path, page(found, lang, now(), left_out))
    results = gather(found)
    if as_json:
        print_json(summary(path, results, left_out))
        return
    out.print(sentence(results, words_in(lang)), markup=False, highlight=False, soft_wrap=True)
    out.print(f"written to {path}", markup=False, highlight=False, soft_wrap=True)
