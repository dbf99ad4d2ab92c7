"""The command 'dl3 report': turns records into one HTML page, or compares two records."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer

from dl3.cli.outlet import judging
from dl3.cli.printing import Fitted, err, out, print_json, table
from dl3.model.fault import Fault, UsageFault
from dl3.model.trial import Throughput, wire_of
from dl3.record.journal import now
from dl3.record.reader import Record, read
from dl3.report.by_frame import is_at_least
from dl3.report.compare import Change, Comparison, compare
from dl3.report.comparison_table import change_text, ordered, shown, unit, verdict_text
from dl3.report.figure_words import at_text, variant_text
from dl3.report.groups import Groups
from dl3.report.measures import figures
from dl3.report.page import page_of
from dl3.report.plain import as_csv, as_json, comparison_as_json
from dl3.report.results import Record as Entry
from dl3.report.results import Results, gather
from dl3.report.summary import sentences
from dl3.report.tally import recount, tally
from dl3.report.texts import words_in
from dl3.report.words import Language, Words

WORSE = 1  # exit status of a comparison
OUTPUT_HELP = "Output HTML file; default: name of the last record with suffix .html, or none with --csv or --json."
MANY = 40  # figures in a terminal
# Keys of the headings, as on the page.
COLUMNS = ("~device", "frame", "~figure", "~at_what", ">before", ">after_it", "unit_of", ">change", "verdict")


def write(path: Path, text: str) -> None:
    """Write the page completely or not at all."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise Fault(
            f"the report {path} cannot be written: {error.strerror}; choose another file with --output"
        ) from error


def result_as_json(search: Throughput, groups: Groups) -> dict[str, object]:
    """The result of a search in machine-readable form."""
    counts = tally(search, groups)
    bounds = {"is_at_least": is_at_least(search), "range_pps": search.range_pps}
    derived = {"l1_bps": search.l1_bps, "line_share": search.line_share, **bounds}
    counted = {"n_trials": counts.n, "n_invalid": counts.n_invalid, "noise": tuple(recount(search, groups))}
    return search.model_dump(exclude={"facts", "kind"}) | derived | counted | {"wire": wire_of(search.facts)}


def refuse_empty(records: Sequence[Record]) -> None:
    """Refuse to write a page without any records."""
    if not any(record.lines for record in records):
        names = ", ".join(str(record.path) for record in records)
        contain = "contains" if len(records) == 1 else "contain"
        raise UsageFault(f"{names} {contain} no trials or results; specify a record written by 'dl3 bench'")


def refuse_both(as_csv: bool, as_json: bool) -> None:
    """Only one machine-readable format at a time."""
    if as_csv and as_json:
        raise UsageFault("--csv and --json are mutually exclusive")


def page_path(records: Sequence[Path], named: Path | None, is_for_programs: bool) -> Path | None:
    """Where the page goes; machine-readable output has none unless it is named."""
    if is_for_programs and named is None:
        return None
    output = named or records[-1].with_suffix(".html")
    refuse_record(output, records)
    return output


def refuse_record(output: Path, records: Sequence[Path]) -> None:
    """The page must not overwrite the records it is made from."""
    if output.exists() and any(output.samefile(record) for record in records):
        raise UsageFault(f"--output {output} is one of the records: choose another file for the page")


def numbered(records: Sequence[Record]) -> Iterator[tuple[Entry, str]]:
    """All entries of records with their lines; with several files, with the file's number."""
    for n, record in enumerate(records, 1):
        for number, entry in record.lines:
            yield entry, f"{n}:{number}" if len(records) > 1 else str(number)


def read_all(paths: Sequence[Path]) -> tuple[list[Record], list[str]]:
    """The records, and what could not be read of them."""
    records = [read(path) for path in paths]
    left_out = [text for one in records for text in one.left_out]
    for text in left_out:
        err.print(f"dl3: {text}", markup=False, highlight=False, soft_wrap=True)
    refuse_empty(records)
    return records, left_out


def results_of(records: Sequence[Record]) -> Results:
    """All records together."""
    found = list(numbered(records))
    return gather((entry for entry, _ in found), (line for _, line in found))


def refuse_without_results(records: Sequence[Record]) -> None:
    """A record without figures cannot be compared."""
    if empty := [str(record.path) for record in records if not figures(results_of([record]))]:
        method = "has" if len(empty) == 1 else "have"
        raise UsageFault(
            f"{' and '.join(empty)} {method} no results, so nothing can be compared: "
            "specify a record with results of 'dl3 bench', or use --together for one page of both"
        )


def compared(records: Sequence[Record]) -> Comparison:
    """The changes from the first record to the second."""
    old, new = records
    has_names = old.path.name != new.path.name
    names = [path.name if has_names else str(path) for path in (old.path, new.path)]
    refuse_without_results(records)
    found = compare(results_of([old]), results_of([new]), *names)
    if not found.has_common:
        raise UsageFault(
            f"{old.path} and {new.path} have no question in common, so nothing can be compared: "
            "give both the same campaign or the same --dut-name, or use --together for one page of both"
        )
    return found


def change_row(change: Change, words: Words) -> tuple[object, ...]:
    """A figure in the terminal."""
    of = change.figure
    percent = "-" if change.ratio is None else f"{change_text(change, 1)} %"
    head = (f"{of.dut} {variant_text(of, words)}".strip(), words.short_frame(of.frame), words.name("figure", of.name))
    values = (shown(change.old), shown(change.new), unit(of), percent)
    return *head, at_text(of, words), *values, verdict_text(change, words)


def changes_table(changes: Sequence[Change], words: Words) -> Fitted:
    """Figures in the terminal."""
    columns = [f"{key[: -len(name)]}{words(f'table.{name}').lower()}" for key in COLUMNS if (name := key.lstrip("~>"))]
    return table("", columns, [change_row(change, words) for change in changes])


def shown_changes(comparison: Comparison) -> list[Change]:
    """All judged figures; if there are many, only those that changed."""
    changes = ordered(comparison)
    return changes if len(changes) <= MANY else [change for change in changes if change.verdict != "same"]


def say(results: Results, comparison: Comparison | None, path: Path, lang: Language) -> None:
    """The outcome for people."""
    words = words_in(lang)
    for text in sentences(results, words, comparison):
        out.print(text, markup=False, highlight=False, soft_wrap=True)
    if comparison:
        changes = shown_changes(comparison)
        out.print(changes_table(changes, words))
        if left := len(ordered(comparison)) - len(changes):
            out.print(words("comparison.left", n=left), highlight=False, soft_wrap=True)
    out.print(words("written", path=path), markup=False, highlight=False, soft_wrap=True)


def summary(
    path: Path | None, results: Results, left_out: Sequence[str], comparison: Comparison | None
) -> dict[str, object]:
    """What --json prints."""
    groups = Groups(results)
    found = {
        "page": str(path) if path else None,
        "throughput": [result_as_json(one, groups) for one in results.searches],
        **as_json(results, left_out),
    }
    return {**found, "comparison": comparison_as_json(comparison)} if comparison else found


def made(
    paths: Sequence[Path], output: Path | None, lang: Language, is_compared: bool, for_programs: tuple[bool, bool]
) -> Comparison | None:
    """Write the page and print; returns the comparison. `for_programs`: as CSV, as JSON."""
    records, left_out = read_all(paths)
    path = page_path(paths, output, any(for_programs))
    comparison = compared(records) if is_compared else None
    results = results_of(records[1:] if comparison else records)
    if path:
        write(path, page_of(results, lang, now(), left_out, comparison))
    with_csv, with_json = for_programs
    if with_csv:
        sys.stdout.write(as_csv(results))
    elif with_json:
        print_json(summary(path, results, left_out, comparison))
    elif path:
        say(results, comparison, path, lang)
    return comparison


def report(
    record: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Records written by 'dl3 bench'; two records are compared.")
    ],
    output: Annotated[Path | None, typer.Option(metavar="FILE", help=OUTPUT_HELP)] = None,
    lang: Annotated[Language, typer.Option(help="Language of the page and of the output.")] = Language.EN,
    together: Annotated[bool, typer.Option(help="Show two records on one page instead of comparing them.")] = False,
    as_csv_: Annotated[
        bool, typer.Option("--csv", help="Print figures as CSV; write a page only with --output.")
    ] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print JSON; write a page only with --output.")] = False,
) -> None:
    """Write a self-contained HTML report of benchmark records: results, charts, host information.

    Two records are compared: the report shows what changed beyond noise. Exit status: 0 nothing became worse, 1 a figure
    became worse or is missing, 2 the records could not be compared. Three or more records, or --together: no comparison, all
    results on one page.

    Example: dl3 report build/records/before.jsonl build/records/after.jsonl
    """
    refuse_both(as_csv_, as_json_)
    is_compared = len(record) == 2 and not together
    with judging() if is_compared else nullcontext():
        comparison = made(record, output, lang, is_compared, (as_csv_, as_json_))
    if comparison and comparison.is_worse:
        raise typer.Exit(WORSE)
