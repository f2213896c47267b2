"""The certificate of a release: its guarantee (ε, δ), its measurements, and their cost, recomputed in two ways."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpsyn import notebook
from dpsyn.accounting.budget import Account, Budget, MeasurementRecord, replay
from dpsyn.accounting.composition import EpsilonBounds
from dpsyn.accounting.costs import Exponential, Gaussian, Laplace, MechanismCost, PartitionSelection, check_sensitivity
from dpsyn.accounting.exact_numbers import format_short
from dpsyn.accounting.hash_chain import LedgerHead
from dpsyn.accounting.large_epsilon import MAX_UNASKED_EPSILON, describe_large_epsilon
from dpsyn.accounting.privacy_unit import PrivacyUnit
from dpsyn.errors import BudgetError, InternalError

CERTIFICATE_FORMAT = 2
"""The version of the certificate's plain data."""

PRIVACY_FLAG = "differentially_private"
"""The key of plain data for whether the noise was real; a run whose noise came from a test has no guarantee."""

MAX_RECIPE_DEPTH = 20
"""Levels of nested data in a recipe; a file that nests deeper was made to harm."""

_QUERY_FACT = "the table is the answer of the query: "

_MAX_SHOWN_PURPOSES = 3  # of measurements that were left out
_LINE_LENGTH = 110  # characters of a line of the summary
_UNIT_HEADING = "The guarantee in detail"
_MAX_SHOWN_KEY = 60  # characters of a key that a certificate should not have

_MECHANISM_NAMES = {
    Gaussian: "Gaussian",
    Laplace: "Laplace",
    Exponential: "exponential mechanism",
    PartitionSelection: "partition selection",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What is known of a run once it ends, besides its measurements; the ledger records it when the run is closed.

    Attributes:
        lost_answers: how many of the measurements were charged although their answers were lost and not used.
        left_out: the measurements that were planned and not made, because nothing was left after that loss.
        contents_hash: the SHA-256 of what gives the released numbers their meaning; empty if nothing was released.
    """

    lost_answers: int = 0
    left_out: tuple[str, ...] = ()
    contents_hash: str = ""

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "lost_answers": self.lost_answers,
            "left_out": list(self.left_out),
            "contents_hash": self.contents_hash,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> RunOutcome:
        """Read an outcome back from plain data, which may hold more."""
        return cls(
            lost_answers=int(data["lost_answers"]),
            left_out=tuple(str(purpose) for purpose in data["left_out"]),
            contents_hash=str(data["contents_hash"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A checked statement about one run; made by ``Certificate.from_account``, which recomputes the cost.

    The guarantee is (ε, δ) of the budget: no course of a run can exceed it, however the run decides on its way how much
    to spend. The recomputed values of ε are the cost of the measurements that were made. They are a guarantee of their
    own only if the measurements were fixed in advance or the budget was spent completely.

    Attributes:
        account: the budget and the measurements.
        epsilon_bounds: ε of the measurements, recomputed in every way that applies.
        privacy_unit: the privacy unit and the neighboring relation.
        dataset: the name of the dataset; may be empty.
        run: the name of the run.
        uses_real_noise: False if a test injected the noise.
        declared_public: facts that the data owner declared public.
        ledger_head: the ledger's last entry about this run; None if no ledger was kept.
        recipe: what identifies the recipe, as plain JSON data; its name has the key ``name``.
        outcome: what was lost and left out, and a hash of what gives the released numbers their meaning.
    """

    account: Account
    epsilon_bounds: EpsilonBounds
    privacy_unit: PrivacyUnit
    dataset: str
    run: str
    uses_real_noise: bool
    declared_public: tuple[str, ...]
    ledger_head: LedgerHead | None
    recipe: dict[str, Any] = field(default_factory=dict, hash=False)
    outcome: RunOutcome = RunOutcome()

    @classmethod
    def from_account(
        cls,
        account: Account,
        privacy_unit: PrivacyUnit,
        *,
        dataset: str = "",
        run: str = "",
        uses_real_noise: bool = True,
        declared_public: tuple[str, ...] = (),
        ledger_head: LedgerHead | None = None,
        recipe: Mapping[str, Any] = {},
        outcome: RunOutcome = RunOutcome(),
        stated_epsilon: float | None = None,
    ) -> Certificate:
        """Recompute the cost of an account's measurements; a cost above the guarantee is an InternalError.

        ``stated_epsilon`` is the ε by privacy loss distributions that a certificate states, see ``from_data``.
        """
        budget = account.budget
        bounds = account.total.epsilon_bounds(budget.epsilon, budget.delta, stated_epsilon)
        if account.total.delta > budget.delta or bounds.epsilon > budget.epsilon:
            raise InternalError(
                f"the measurements cost ε = {float(bounds.epsilon):.9g} at δ = {format_short(budget.delta)}, more than "
                f"the guarantee of {float(budget.epsilon):.9g}; do not publish this release, and please report it"
            )
        return cls(
            account=account,
            epsilon_bounds=bounds,
            privacy_unit=privacy_unit,
            dataset=dataset,
            run=run,
            uses_real_noise=uses_real_noise,
            declared_public=declared_public,
            ledger_head=ledger_head,
            recipe=plain_recipe(recipe),
            outcome=outcome,
        )

    def __repr__(self) -> str:
        return f"Certificate({self.guarantee}, {len(self.account.measurements)} measurements)"

    def _repr_html_(self) -> str:
        rows = [(purpose, count, share) for purpose, (count, share) in self._spending().items()]
        notice = "" if self.uses_real_noise else "NOT PRIVATE: the noise came from a test."
        headings = ("measurement", "times", "share of what was spent")
        return notebook.html_table(repr(self), headings, rows, notice=notice, notes=self.statements())

    def plot(self, axes: notebook.Axes | None = None) -> notebook.Axes:
        """Draw what the budget was spent on, as shares of ρ. Needs matplotlib."""
        spending = self._spending()
        title = f"Spent of ε = {float(self.account.budget.epsilon):g}"
        return notebook.plot_bars(
            axes, list(spending), [share for _, share in spending.values()], title=title, unit="share of ρ"
        )

    def _spending(self) -> dict[str, tuple[int, float]]:
        """How often each kind of measurement was made, and its share of ρ; the largest first."""
        rhos: dict[str, list[float]] = {}
        for measurement in self.account.measurements:
            rhos.setdefault(measurement.purpose, []).append(float(measurement.cost.rho))
        total = sum(map(sum, rhos.values())) or 1.0
        spending = {purpose: (len(each), sum(each) / total) for purpose, each in rhos.items()}
        return dict(sorted(spending.items(), key=lambda item: -item[1][1]))

    @property
    def guarantee(self) -> str:
        """ε and δ of the guarantee, as every text about the release states them; δ is rounded up."""
        budget = self.account.budget
        return f"ε = {float(budget.epsilon):g}, δ = {_format_rounded_up(budget.delta, 3)}"

    @property
    def lost_answers(self) -> int:
        """How many of the measurements were charged although their answers were lost and not used."""
        return self.outcome.lost_answers

    @property
    def left_out(self) -> tuple[str, ...]:
        """The measurements that were planned and not made, because nothing was left after that loss."""
        return self.outcome.left_out

    @property
    def query(self) -> str:
        """The query whose answer is the table; empty if there was none."""
        facts = [fact for fact in self.declared_public if fact.startswith(_QUERY_FACT)]
        return facts[-1].removeprefix(_QUERY_FACT) if facts else ""

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "format": CERTIFICATE_FORMAT,
            PRIVACY_FLAG: self.uses_real_noise,
            "dataset": self.dataset,
            "run": self.run,
            "recipe": self.recipe,
            "guarantee": self.account.budget.to_data(),
            "privacy_unit": self.privacy_unit.to_data(),
            "certified_epsilon": float(self.epsilon_bounds.epsilon),
            "epsilon_bounds": self.epsilon_bounds.to_data(),
            "measurements": [measurement.to_data() for measurement in self.account.measurements],
            **self.outcome.to_data(),
            "declared_public": list(self.declared_public),
            "ledger_head": self.ledger_head.to_data() if self.ledger_head else None,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any], *, recompute: bool = True) -> Certificate:
        """Read a certificate back; its cost is recomputed from its measurements and must agree.

        Its budget must keep the guarantee however it is spent, because that is what holds for a run that decides
        adaptively. Without ``recompute`` its ε by privacy loss distributions is not computed again if a closed formula
        shows that the measurements cost no more. That is an equally valid proof and a hundred times faster.
        """
        if data.get("format") != CERTIFICATE_FORMAT:
            raise BudgetError(
                f"this certificate has format {data.get('format')}; this DPSyn reads format {CERTIFICATE_FORMAT}"
            )
        try:
            budget = Budget.from_data(data["guarantee"])
            if not budget.worst_case.satisfies(budget.epsilon, budget.delta):
                raise BudgetError(
                    "the budget of this certificate exceeds its guarantee (ε, δ); the certificate was changed"
                )
            unit = PrivacyUnit(**data["privacy_unit"])
            measurements = tuple(MeasurementRecord.from_data(entry) for entry in data["measurements"])
            for measurement in measurements:
                check_sensitivity(measurement.purpose, measurement.cost, unit)
            certificate = cls.from_account(
                replay(budget, measurements),
                unit,
                dataset=str(data["dataset"]),
                run=str(data["run"]),
                uses_real_noise=parse_privacy_flag(data),
                declared_public=tuple(str(fact) for fact in data["declared_public"]),
                ledger_head=LedgerHead(**data["ledger_head"]) if data["ledger_head"] else None,
                recipe=data["recipe"],
                outcome=RunOutcome.from_data(data),
                stated_epsilon=None if recompute else data["epsilon_bounds"]["pld"],
            )
            stated = float(data["certified_epsilon"])
            unknown = next(find_unknown_keys(data, certificate.to_data()), None)
        except BudgetError:
            raise
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise BudgetError(f"this certificate is not as DPSyn writes it: {error}") from None
        if unknown is not None:
            raise BudgetError(
                f"this certificate has an entry {unknown[:_MAX_SHOWN_KEY]!r}, which DPSyn does not write; it was "
                "changed, or written by a newer DPSyn"
            )
        if not math.isclose(stated, certificate.epsilon_bounds.epsilon, rel_tol=1e-6):
            raise BudgetError(
                f"this certificate states ε = {stated:g}, but its measurements cost "
                f"{float(certificate.epsilon_bounds.epsilon):.9g}; it was changed after it was written"
            )
        return certificate

    def summary(self) -> str:
        """What is guaranteed, for whom, and what it cost, in about ten lines for people who are no experts."""
        return f"{_title_text(self)}\n\n{_wrap_lines(self.statements())}\n"

    def statements(self) -> tuple[str, ...]:
        """What the summary states, each statement as one line."""
        return tuple(filter(None, _summary_statements(self)))

    def text(self, *, measurements: bool = True) -> str:
        """The summary, then every detail; without the list of measurements if a table of them follows."""
        unit = f"{_UNIT_HEADING}\n{self.privacy_unit.statement}"
        parts = [_title_text(self), _wrap_lines(self.statements()), unit, *_details(self, measurements)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def paragraphs(self, *, measurements: bool = True) -> tuple[str, ...]:
        """The text in parts, for a page that wraps lines by itself; indented lines of a part are a list."""
        unit = (_UNIT_HEADING, self.privacy_unit.statement)
        parts = [*_title_text(self).split("\n\n"), *self.statements(), *unit, *_details(self, measurements)]
        return tuple(part for part in parts if part)


def find_unknown_keys(data: Any, known: Any) -> Iterator[str]:
    """The paths of keys in plain data that other plain data of the same kind does not have."""
    if isinstance(data, dict) and isinstance(known, dict):
        for key, value in data.items():
            if key not in known:
                yield str(key)
            yield from (f"{key} {inner}" for inner in find_unknown_keys(value, known.get(key)))
    elif isinstance(data, list) and isinstance(known, list):
        for i, (value, other) in enumerate(zip(data, known, strict=False), start=1):
            yield from (f"{i} {inner}" for inner in find_unknown_keys(value, other))


def describe_query(query: str) -> str:
    """What a certificate states about a query, which is part of what is certified."""
    return f"{_QUERY_FACT}{query}" if query else "the table is read without a query"


def parse_privacy_flag(data: Mapping[str, Any]) -> bool:
    """Whether plain data states that the noise was real; a KeyError if it has no such flag."""
    return data[PRIVACY_FLAG] is True


def plain_recipe(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe's identity as JSON would give it back; a BudgetError if it is not plain JSON data."""
    plain = _plain_value(recipe, MAX_RECIPE_DEPTH)
    if not isinstance(plain, dict):
        raise BudgetError(f"a recipe is recorded as a mapping such as {{'name': 'privsyn'}}, not as {type(recipe)}")
    return plain


def _plain_value(value: Any, depth: int) -> Any:
    if depth < 0:
        raise BudgetError(f"a recipe nests more than {MAX_RECIPE_DEPTH} levels of data")
    if isinstance(value, Mapping):
        return {str(key): _plain_value(part, depth - 1) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_value(part, depth - 1) for part in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise BudgetError(f"a recipe is recorded as plain JSON data, which a {type(value).__name__} is not")


# ── the parts of the text ────────────────────────────────────────────────────────────────────────────────────


def _title_text(certificate: Certificate) -> str:
    title = "Privacy certificate" + (f" for {certificate.dataset}" if certificate.dataset else "")
    if certificate.uses_real_noise:
        return title
    return (
        f"{title}\n\nNOT PRIVATE. The noise of this run came from a test, not from the operating system.\n"
        f"Nothing made from it may be published; the guarantee below does not apply to it."
    )


def _summary_statements(certificate: Certificate) -> Iterator[str]:
    """What everyone should read, in ten lines; what is exact and complete follows them in the certificate."""
    budget, unit = certificate.account.budget, certificate.privacy_unit
    epsilon, delta = float(budget.epsilon), _format_rounded_up(budget.delta, 3)
    factor = math.exp(min(epsilon, MAX_UNASKED_EPSILON))
    odds = _format_rounded_up(factor, 3) if factor < 100 else f"{math.ceil(factor):,}"
    odds = f"{odds if epsilon <= MAX_UNASKED_EPSILON else f'e^{epsilon:g}'} times"
    but = f", except with probability {delta}" if budget.delta else ""
    yield f"Guarantee: {certificate.guarantee}."
    yield f"For whom: {unit.protected}."
    yield (
        f"Meaning: whatever anyone concludes from this release is at most {odds} as likely as it would be "
        f"{unit.compared_table}{but}."
    )
    yield describe_large_epsilon(epsilon)
    yield from unit.caveats
    yield _cost_sentences(certificate)
    yield from _loss_sentences(certificate)
    yield _exclusion_sentence(certificate)


def _details(certificate: Certificate, measurements: bool) -> Iterator[str]:
    """What is exact and complete, after the summary."""
    yield _epsilon_bounds_text(certificate)
    yield _recipe_text(certificate)
    yield _measurements_text(certificate) if measurements else ""
    yield _declared_public_text(certificate)
    yield _scope_text(certificate)


def _cost_sentences(certificate: Certificate) -> str:
    """What the measurements cost, and why a second figure may be above the guarantee."""
    bounds, budget = certificate.epsilon_bounds, certificate.account.budget
    number = len(certificate.account.measurements)
    noisy = f"{number:,} noisy measurement{'' if number == 1 else 's'}"
    cost = f"{noisy} cost ε = {_format_rounded_up(bounds.epsilon)} of {float(budget.epsilon):g}"
    if not certificate.uses_real_noise:
        return f"Not certified. With real noise, {cost}."
    sentences = [f"Certified: the guarantee holds. {cost[0].upper()}{cost[1:]}, recomputed from their records."]
    if math.isfinite(bounds.zcdp) and bounds.zcdp > budget.epsilon:
        sentences.append(
            f"A second, coarser formula yields {_format_rounded_up(bounds.zcdp)} for the same measurements. Both are "
            "upper bounds on one cost, so the smaller one counts."
        )
    if bounds.epsilon <= budget.epsilon * Fraction(999, 1000):
        sentences.append("A part of the budget was not spent; the guarantee stays as stated.")
    return " ".join(sentences)


def _loss_sentences(certificate: Certificate) -> Iterator[str]:
    if lost := certificate.lost_answers:
        yield (
            f"{lost} of the {len(certificate.account.measurements)} measurements were charged, and their answers were "
            "lost when the run was interrupted. Their cost is included; the others got what was left."
        )
    if left_out := certificate.left_out:
        shown = "; ".join(left_out[:_MAX_SHOWN_PURPOSES])
        more = f"; and {len(left_out) - _MAX_SHOWN_PURPOSES} more" if len(left_out) > _MAX_SHOWN_PURPOSES else ""
        yield f"Nothing was left for: {shown}{more}. The release does without them."


def _exclusion_sentence(certificate: Certificate) -> str:
    facts = len(certificate.declared_public)
    declared = f"{facts} fact{'' if facts == 1 else 's'} that the data owner declared public" if facts else "the schema"
    others = (
        "other releases of the same data, because no ledger was kept"
        if certificate.ledger_head is None
        else "other releases of the same data, which the ledger adds up"
    )
    return f"Not covered: {declared}; {others}."


def _epsilon_bounds_text(certificate: Certificate) -> str:
    bounds, budget = certificate.epsilon_bounds, certificate.account.budget
    real = "" if certificate.uses_real_noise else ", had its noise been real"
    lines = [f"Cost of the recorded measurements: ε at δ = {format_short(budget.delta)}, recomputed{real}"]
    if bounds.pld is not None:
        lines.append(
            f"  {_format_rounded_up(bounds.pld):>12}  by privacy loss distributions (dp_accounting, rounded up)"
        )
    if math.isfinite(bounds.zcdp):
        coarse = "; coarser here, it uses the sum of costs only" if bounds.zcdp > budget.epsilon else ""
        lines.append(
            f"  {_format_rounded_up(bounds.zcdp):>12}  "
            f"by zero-concentrated differential privacy, tight conversion{coarse}"
        )
    if bounds.basic is not None:
        only = ", which is the only way at δ = 0" if not budget.delta else ""
        lines.append(f"  {_format_rounded_up(bounds.basic):>12}  by adding up the pure steps{only}")
    total = certificate.account.total
    spent = f"Spent: ρ = {float(total.rho):.6g} of {float(budget.reserved_rho):.6g} reserved"
    if budget.is_pure:
        spent = f"Spent: ε = {float(sum(total.pure_epsilons)):.6g} of {float(budget.amount):.6g} reserved"
    if budget.threshold_delta:
        spent += (
            f"; δ = {format_short(total.delta, 3)} of {format_short(budget.threshold_delta, 3)} for partition selection"
        )
    lines.append(f"{spent}." if budget.is_pure else f"{spent}. (ρ is the unit in which Gaussian noise adds up.)")
    if bounds.epsilon <= budget.epsilon * Fraction(999, 1000):
        lines += [
            "Part of the budget was not spent. Because later measurements may have depended on earlier answers,",
            "the guarantee is the full (ε, δ) above, not the smaller recomputed value.",
        ]
    return "\n".join(lines)


def _recipe_text(certificate: Certificate) -> str:
    if not certificate.recipe:
        return ""
    options = ". Its options are in the JSON certificate." if len(certificate.recipe) > 1 else ""
    chosen = certificate.recipe.get("noise_choice")
    noise = f"\nNoise: {chosen}." if isinstance(chosen, str) else ""
    return f"Recipe: {certificate.recipe.get('name', 'without a name')}{options}{noise}"


def _measurements_text(certificate: Certificate) -> str:
    measurements = certificate.account.measurements
    counted = Counter(_MECHANISM_NAMES[type(measurement.cost)] for measurement in measurements)
    kinds = ", ".join(f"{number} {name}" for name, number in counted.items()) or "none"
    lines = [f"Measurements: {kinds}."]
    lines += [f"  {i:>4}  {m.purpose}: {describe_cost(m.cost)}" for i, m in enumerate(measurements, start=1)]
    return "\n".join(lines)


def describe_cost(cost: MechanismCost) -> str:
    """A mechanism and its cost in words: "Gaussian noise, σ = 5.5 counts, ρ = 0.0166"."""
    match cost:
        case Gaussian():
            return f"Gaussian noise, σ = {cost.sigma:.6g} counts, ρ = {float(cost.rho):.4g}"
        case Laplace():
            return f"Laplace noise, scale {cost.scale:.6g} counts, ε = {float(cost.pure_epsilons[0]):.4g}"
        case Exponential():
            times = f", {cost.selections} selections, together" if cost.selections > 1 else ","
            return f"exponential mechanism{times} ε = {float(cost.charged_epsilon):.4g}"
        case PartitionSelection():
            return f"{describe_cost(cost.noise)}; threshold {cost.threshold}, δ = {format_short(cost.charged_delta, 3)}"
    raise InternalError(f"there is no description for a mechanism of type {type(cost).__name__}")


def _declared_public_text(certificate: Certificate) -> str:
    if not certificate.declared_public:
        return "Declared public: nothing beyond the names and domains in the schema."
    lines = ["Declared public by the data owner, and not protected:"]
    return "\n".join([*lines, *(f"  {fact}" for fact in certificate.declared_public)])


def _scope_text(certificate: Certificate) -> str:
    head = certificate.ledger_head
    if head is None:
        return (
            "Scope: this run only. No ledger was kept, so other releases of the same data are not counted.\n"
            "Its charges were recorded by its own journal alone: a copy of that could have been resumed a second time."
        )
    return (
        f"Scope: run {certificate.run}, recorded in the ledger up to entry {head.sequence}, {head.hash}.\n"
        f"Other releases of the same data add to the total cost, which the ledger shows."
    )


def _format_rounded_up(number: float | Fraction, digits: int = 7) -> str:
    """Some significant digits, rounded up, so the printed bound is still valid."""
    if number == 0:
        return "0"
    unit = Fraction(10) ** (math.floor(math.log10(number)) - digits + 1)
    return format_short(math.ceil(Fraction(number) / unit) * unit, digits)


def _wrap_lines(lines: Iterable[str]) -> str:
    """Sentences as lines of a text file; where one goes on, it is indented."""
    wrapper = textwrap.TextWrapper(_LINE_LENGTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(wrapper.fill, lines))
