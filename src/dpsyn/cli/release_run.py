"""What commands that release numbers from a private table share: their recipe, their journal, their refusals."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn import atomic_files
from dpsyn.cli import output
from dpsyn.cli.common_options import DEFAULT_RECIPE, DEFAULT_WEIGHT
from dpsyn.errors import (
    JournalError,
    LedgerError,
    OutputError,
    SourceError,
    UserError,
    quote_argument,
)
from dpsyn.progress import FIT_MODEL, READ_TABLE, Progress, Step
from dpsyn.release_files import is_release

if TYPE_CHECKING:
    from dpsyn import Recipe, Schema, SigningKey, Synopsis

_RELEASE_FILES = (
    ("synthetic.csv",),
    ("synthetic", "part-00000.parquet"),
    ("synopsis.dpsyn",),
    ("certificate.json",),
    ("certificate.txt",),
    ("datapackage.json",),
    ("README.txt",),
)
"""Files of a release folder, as far as a glob pattern can distinguish them; a test compares them with a release."""

_INPUTS = ("data", "schema", "plan", "public", "public_schema", "ledger", "extend", "synopsis")
"""The files that commands of a release read."""


def choose_recipe(
    name: str | None, settings: Sequence[str], weights: Sequence[str], plan: Path | None, schema: Schema
) -> Recipe:
    """The recipe that ``--recipe``, ``--set``, ``--weight`` and ``--plan`` describe together."""
    if plan is not None and name not in (None, dpsyn.Planned.name):
        raise UserError(f"a plan decides itself what to measure; leave out --recipe {name}, or leave out --plan")
    name = (dpsyn.Planned.name if plan is not None else DEFAULT_RECIPE) if name is None else name
    options: dict[str, Any] = {**parse_settings(settings)}
    for option, given in (("plan", plan), ("weights", weights)):
        if given and option in options:
            raise UserError(f"--set {option}=… and --{option.removesuffix('s')} are the same option; give one of them")
    if plan is not None:
        options["plan"] = dpsyn.Plan.load(plan, schema)
    if weights:
        able = [other for other, kind in dpsyn.RECIPES.items() if _takes_weights(kind)]
        if name in dpsyn.RECIPES and name not in able:
            raise UserError(f"recipe {name!r} has no weights; leave out --weight, or use recipe {' or '.join(able)}")
        options["weights"] = parse_weights(weights)
    if name == dpsyn.Planned.name and "plan" not in options:
        raise UserError("recipe 'planned' measures what a plan names; give the plan with --plan FILE")
    return dpsyn.find_recipe(name, options)


def _takes_weights(recipe: type[Recipe]) -> bool:
    return any(option.path == "weights" for option in dpsyn.list_options(recipe))


def parse_settings(texts: Iterable[str]) -> dict[str, str]:
    """Values by option path, from texts such as ``synthesis=gum``."""
    settings: dict[str, str] = {}
    for text in texts:
        path, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not path:
            raise UserError(f"--set {quote_argument(text)} sets nothing; write PATH=VALUE, such as synthesis=gum")
        if path in settings:
            raise UserError(
                f"--set gives {path} twice, as {quote_argument(settings[path])} and as "
                f"{quote_argument(value)}; give it once"
            )
        settings[path] = value
    return settings


def parse_weights(texts: Iterable[str]) -> dict[str, float]:
    """Weights by attribute, from texts such as ``income`` and ``age=2``."""
    weights: dict[str, float] = {}
    for text in texts:
        name, equals, weight = (
            (part.strip() for part in text.rpartition("=")) if "=" in text else (text.strip(), "", "")
        )
        try:
            number = float(weight) if equals else DEFAULT_WEIGHT
        except ValueError:
            raise UserError(
                f"--weight {quote_argument(text)} has no number after the =; write NAME or NAME=NUMBER"
            ) from None
        if name in weights:
            raise UserError(f"--weight gives {name} twice, as {weights[name]:g} and as {number:g}; give it once")
        weights[name] = number
    return weights


def parse_epsilons(text: str) -> list[float]:
    """Several ε, from a text such as ``0.1,1,10``."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise UserError(f"{quote_argument(text)} is not a list of ε; write 0.1,1,10") from None
    if not all(0 < number < float("inf") for number in numbers):
        raise UserError(f"{quote_argument(text)}: give positive numbers, such as 0.1,1,10")
    return numbers


def load_signing_key(path: Path) -> SigningKey:
    """A private key, before any budget is spent; its passphrase is asked for on a terminal."""
    return dpsyn.SigningKey.load(path, partial(_ask_passphrase, path))


def _ask_passphrase(path: Path) -> str:
    if not output.can_ask():
        raise UserError(
            f"the key {path} has a passphrase, and there is no terminal to ask for it on; set DPSYN_KEY_PASSPHRASE"
        )
    return output.ask_secret(f"Passphrase of {path}")


def check_extras(target: str, **extras: object) -> None:
    """Refuse options for a release folder if the output is none, before any budget is spent."""
    given = [f"--{name.replace('_', '-')}" for name, value in extras.items() if value]
    if given and not output.is_folder(target):
        raise OutputError(
            f"{' and '.join(given)}: only a release folder has these, and {target} is none; end its name in a slash"
        )


def journal_path(target: str, synopsis: Path | None = None) -> Path | None:
    """The file that keeps the noisy answers of a run until its output is written, beside that output.

    A run that prints its result keeps it beside its synopsis, if there is one.
    """
    kept = str(synopsis) if target == "-" and synopsis else target
    return None if kept == "-" else Path(f"{kept.rstrip('/')}.journal")


def check_journal(journal: Path | None, *, resume: bool, ledger: object) -> None:
    """Refuse a run that could not keep or resume its journal, before any budget is spent."""
    if journal is not None:
        atomic_files.check_writable(journal)
    elif resume:
        raise OutputError(
            "a run that writes to standard output keeps no journal, so it cannot be resumed; give -o FILE"
        )
    elif ledger is not None:
        raise OutputError(
            "a release that is recorded in a ledger must be kept, because its budget is spent even if its output is "
            "lost; give -o FILE, or --synopsis FILE beside the standard output"
        )


def find_complete_output(target: str, journal: Path | None, *, resume: bool, force: bool) -> int | None:
    """The size of the journal if the run to be resumed may have written its output already; else None.

    A run that is killed after its output is written and before its journal is removed leaves both, the output being
    the newer one. With ``--force`` the output is written again.
    """
    if not resume or force or journal is None or not (os.path.exists(journal) and os.path.exists(target)):
        return None
    newer = os.stat(target).st_mtime_ns >= journal.stat().st_mtime_ns
    return journal.stat().st_size if newer else None


def finish_complete_run(target: str, journal: Path | None, size: int, *, quiet: bool) -> None:
    """End a resumed run whose output was there: remove its journal, unless something had to be measured."""
    if journal is None or journal.stat().st_size != size:
        output.refuse_to_overwrite(target, force=False)
    discard_journal(journal)
    if not quiet:
        output.print_line(f"The run was complete: {target} is its output. There was nothing left to do.")


def refuse_collisions(outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
    """Refuse to write two outputs to one path, or over an input."""
    roles: dict[str, str] = {}
    read = {role: inputs.get(role) for role in _INPUTS}
    for role, given in {**read, **outputs}.items():
        if given is None or str(given) == "-":
            continue
        _require_possible_path(str(given))
        path = os.path.realpath(str(given))
        if path in roles and role in outputs:
            raise OutputError(f"{given} is given twice, as {roles[path]} and as {role}; give another name")
        roles.setdefault(path, role)
        if role in outputs and _would_be_read(inputs.get("data"), path, output.is_folder(str(given))):
            raise OutputError(
                f"the output {given} lies where the input {inputs.get('data')} is read from, so the next run would "
                "read it as private data; choose another path"
            )


def check_result_files(targets: Mapping[str, str | None], force: bool, inputs: Iterable[object] = ()) -> list[str]:
    """The paths of the results by option, without standard output.

    Refuses two results on standard output, and a path that is an input, exists, or cannot be written.
    """
    if len(targets) > 1 and all(target == "-" for target in targets.values()):
        raise click.UsageError(f"{' and '.join(targets)} cannot both go to standard output")
    files = {option: target for option, target in targets.items() if target is not None and target != "-"}
    for given in (None, *inputs):
        refuse_collisions(files, {"data": given})
    for target in files.values():
        output.refuse_to_overwrite(target, force)
        atomic_files.check_writable(Path(target))
    return list(files.values())


def _require_possible_path(path: str) -> None:
    """Refuse a name that no file can have."""
    if "\0" in path:
        raise OutputError(f"{quote_argument(path)} cannot be used: no file has such a name")


def _would_be_read(data: object, target: str, folder: bool) -> bool:
    """Whether an output would be read as a part of the private table: below its folder, or matching its pattern."""
    if not isinstance(data, str) or "://" in data:
        return False
    path = PurePath(os.path.realpath(data))
    if os.path.exists(path):
        return os.path.isdir(path) and not is_release(data) and PurePath(target).is_relative_to(path)
    outputs = [PurePath(target), *(PurePath(target, *names) for names in _RELEASE_FILES if folder)]
    return any(_matches_pattern(file.parts, path.parts) for file in outputs)


def _matches_pattern(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path matches a pattern, in which ** stands for any number of folders."""
    if not pattern:
        return not names
    if pattern[0] == "**":
        return _matches_pattern(names, pattern[1:]) or (bool(names) and _matches_pattern(names[1:], pattern))
    return bool(names) and fnmatch(names[0], pattern[0]) and _matches_pattern(names[1:], pattern[1:])


@contextlib.contextmanager
def explain_resume(journal: Path | None) -> Iterator[None]:
    """Print how to continue if the block is interrupted, including by a full disk.

    An error of the ledger or of the journal counts as an interruption only if the run began in this block. A run that
    is resumed may be refused by them, and then there is nothing to continue.
    """
    began_here = journal is not None and not journal.exists()
    try:
        yield
    except (KeyboardInterrupt, SourceError, OutputError, LedgerError, JournalError) as error:
        refused = isinstance(error, LedgerError | JournalError) and not began_here
        if journal is not None and journal.exists() and not refused:
            output.print_line(
                f"the answers so far are kept in {journal}; run the same command with --resume to continue without "
                "spending their budget again",
                to_stderr=True,
            )
        raise


def measure_table(
    journal: Path | None,
    progress: output.ProgressDisplay,
    *,
    data: str,
    schema: Path,
    epsilon: float,
    quiet: bool,
    recipe: str | None = None,
    settings: Sequence[str] = (),
    weights: Sequence[str] = (),
    predicted: str | None = None,
    analyses: Sequence[str] = (),
    plan: Path | None = None,
    groups: Sequence[str] | None = None,
    then: Sequence[Step] = (),
    **options: Any,
) -> Synopsis:
    """Measure a table as the options of a command ask; warnings of the library become notes on standard error.

    ``groups`` replace those of the schema. ``then`` are the steps that the command takes afterwards, for the
    display of progress.
    """
    from dpsyn.report.groups import check_declared_groups

    public = dpsyn.Schema.load(schema).with_groups(groups)
    public.require_public(str(schema))
    check_declared_groups(public)
    chosen = choose_recipe(recipe, settings, weights, plan, public)
    progress.expect(list_steps(chosen, then))
    report: Progress = progress
    if not quiet:
        _note_resources(data, public, chosen, options)
        forecast = partial(_note_forecast, public, chosen, predicted, epsilon, options.get("delta"), progress)
        report = _precede(progress, forecast)
    with show_notes(quiet):
        return dpsyn.measure(
            data,
            public,
            epsilon,
            recipe=chosen,
            target=predicted,
            analyses=analyses,
            journal=journal,
            progress=report,
            **options,
        )


def list_steps(recipe: Recipe, then: Sequence[Step] = ()) -> tuple[Step, ...]:
    """The steps of a release with a recipe, and those that follow it."""
    return (READ_TABLE, *recipe.steps, *FIT_MODEL, *then)


@contextlib.contextmanager
def show_notes(quiet: bool) -> Iterator[None]:
    """Print warnings of the library as notes on standard error; not at all if it shall be quiet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if quiet else "always", UserWarning)
        warnings.showwarning = _print_note
        yield


def _precede(progress: Progress, act: Callable[[], None]) -> Progress:
    """A progress callback that acts before it reports for the first time.

    By then a release has passed every check of public facts, and it has read and spent nothing.
    """
    waiting = [act]

    def report(message: str, share: float) -> None:
        while waiting:
            waiting.pop()()
        progress(message, share)

    return report


def _note_resources(data: str, schema: Schema, recipe: Recipe, options: Mapping[str, Any]) -> None:
    """Print how often a table will be read, if it is not held in memory."""
    source = {name: options[name] for name in ("query", "protect", "engine") if name in options}
    estimate = dpsyn.estimate_resources(data, schema, recipe=recipe, **source)
    if estimate.engine != "memory":
        _print_note(estimate.describe())


def _note_forecast(
    schema: Schema,
    recipe: Recipe,
    target: str | None,
    epsilon: float,
    delta: float | None,
    progress: output.ProgressDisplay,
) -> None:
    """Print what the release is expected to be worth, before a row is read; a warning if that is too little."""
    from dpsyn.forecasts.closed_form import expect_errors, expect_thresholds
    from dpsyn.forecasts.results import MAX_TEXT_SHARE

    rows = schema.expected_size
    if rows is None:
        progress.note("no forecast: the schema has no expected_size; dpsyn forecast --rows N makes one")
        return
    if recipe.name not in (dpsyn.DPSyn.name, dpsyn.Independent.name):
        progress.note(f"no quick forecast of recipe {recipe.name}; dpsyn forecast --recipe {recipe.name} makes one")
        return
    selects, options = recipe.name == dpsyn.DPSyn.name, recipe.to_data()
    target = options.get("target") if target is None else target
    weights = options.get("weights", {})
    expected = expect_errors(schema, epsilon, delta=delta, pairs=selects, target=target, weights=weights)
    thresholds = expect_thresholds(schema, epsilon, rows=rows, delta=delta)
    of_target = "" if expected.with_target is None else f", of pairs with {target} {expected.with_target:.3f}"
    progress.note(
        f"forecast for ε = {epsilon:g} and {rows:,} rows: two-way error about {expected.two_way:.3f}{of_target}, "
        f"one-way {expected.one_way:.3f} (shuffled columns {expected.shuffled:.3f}, sampling {expected.sampling:.3f})"
    )
    if selects and not expected.keeps_pairs:
        _print_note(
            f"by the forecast {expected.verdict}: use a larger ε, fewer columns or fewer values; dpsyn forecast "
            "compares budgets without reading data"
        )
    if empty := [name for name, threshold in thresholds.items() if threshold > MAX_TEXT_SHARE * rows]:
        needed = max(thresholds[name] for name in empty)
        _print_note(
            f"open attributes that will probably come out empty: {', '.join(empty)}. A text is listed if it is in "
            f"about {needed:,} of {rows:,} rows; if the values are public, list them in the schema"
        )


def _print_note(message: Warning | str, *_: object, **__: object) -> None:
    """Print a note at once, before any budget is spent."""
    output.print_line(f"Note: {message}", to_stderr=True)


def discard_journal(journal: Path | None) -> None:
    """Remove a journal once everything that it was kept for is written."""
    if journal is not None:
        journal.unlink(missing_ok=True)


def print_certificate(synopsis: Synopsis, *, to_stderr: bool = False) -> None:
    """Print the guarantee of the last release, and of all releases together if there are several.

    If no pair of attributes was measured, a sentence says so.
    """
    from dpsyn.report import synopsis as words

    certificate = synopsis.certificates[-1]
    if certificate is not None:
        output.print_line(certificate.summary(), to_stderr=to_stderr)
    several = len(synopsis.releases) > 1
    short = [*words.independence_lines(synopsis), *words.public_lines(synopsis)]
    for line in words.overview_lines(synopsis) if several else short:
        output.print_line(line, to_stderr=to_stderr)
