"""The example table: inhabitants of an invented region, sampled from a public random process.

The columns are sampled one after the other, each given earlier ones::

    district ─▶ age ─▶ sex ─▶ marital_status ─▶ household_size
    age, sex ─▶ education
    age, sex, education, household_size ─▶ employed
    education, sex, district ─▶ occupation                          empty for those who never worked
    occupation, education, age, sex × district ─▶ income            0 without a job, heaped on round numbers
    occupation, district, income ─▶ commute_km                      empty without a job, 0 for work at home
    age, district ─▶ move_in_date                                   not before birth, sometimes unknown
    age, education, employed ─▶ health                              often unknown for the young
    health, age, sex, move_in_date ─▶ last_doctor_visit             in office hours, since the move, or empty
    age × education, district ─▶ voted                              empty for minors
    age ─▶ age_group                                                by definition

The parameters are in ``region.py``. Every random choice has its own random stream, named after what it decides. So a
longer table begins with the rows of a shorter one, and a new column does not change the others.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from dpsyn.demo import region
from dpsyn.errors import UserError

IntColumn = NDArray[np.int64]  # one per row: an index into a list of values, or a whole number
FloatColumn = NDArray[np.float64]  # one per row, or a table of weights
BoolColumn = NDArray[np.bool_]  # one per row
DateColumn = NDArray[np.datetime64]  # one per row, unit D
DatetimeColumn = NDArray[np.datetime64]  # one per row, unit s

MAX_DEMO_ROWS = 10**9
"""Person ids have nine digits."""

ID_STEP = 618_033_989
"""The step between consecutive ids, modulo 10⁹. It has no common factor with 10⁹, so ids do not repeat."""


@dataclass(frozen=True, slots=True)
class RandomColumns:
    """A source of random numbers, one per row, with a separate stream for every name."""

    rows: int
    seed: int

    def uniform(self, name: str) -> FloatColumn:
        """Numbers from 0 to below 1."""
        return self._stream(name).random(self.rows)

    def normal(self, name: str) -> FloatColumn:
        """Numbers from the standard normal distribution."""
        return self._stream(name).standard_normal(self.rows)

    def bernoulli(self, name: str, probability: float | FloatColumn) -> BoolColumn:
        """True with the given probability."""
        return self.uniform(name) < probability

    def choose(self, name: str, weights: ArrayLike, group: IntColumn) -> IntColumn:
        """Sample, for every row, a column of ``weights`` with the weights in the row of its group."""
        table = np.asarray(weights, dtype=np.float64)
        ends = np.cumsum(table, axis=1) / table.sum(axis=1, keepdims=True)
        groups, choices = table.shape
        flat = (ends + np.arange(groups)[:, None]).ravel()
        columns = np.searchsorted(flat, group + self.uniform(name), side="right") - group * choices
        chosen: IntColumn = np.minimum(columns, choices - 1)  # the sum of group and number may have been rounded up
        return chosen

    def _stream(self, name: str) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([self.seed, zlib.crc32(name.encode())]))


def people(rows: int = 20_000, seed: int = 0) -> pa.Table:
    """Sample a table of inhabitants of the invented region; the same rows and seed give the same table."""
    if not 0 <= rows <= MAX_DEMO_ROWS or seed < 0:
        raise UserError(f"rows is {rows} and seed is {seed}; give rows from 0 to {MAX_DEMO_ROWS:,}, and a seed from 0")
    random = RandomColumns(rows, seed)
    district = random.choose("district", [[d.share for d in region.DISTRICTS]], np.zeros(rows, dtype=np.int64))
    age = _age(random, district)
    sex = _sex(random, age)
    marital = _marital_status(random, age, sex)
    household = _household_size(random, age, marital, district)
    education = _education(random, age, sex)
    employed = _employment(random, age, sex, education, household)
    occupation = _occupation(random, district, sex, education)
    income = _income(random, occupation, education, age, sex, district) * employed
    moved = _move_in_date(random, age, district)
    health = _health(random, age, education, employed)
    visit = _last_doctor_visit(random, health, age, sex)
    move_known = ~random.bernoulli("move unknown", np.where(age < 75, *region.MOVE_UNKNOWN))
    health_known = ~random.bernoulli("health unknown", _by_band(region.HEALTH_UNKNOWN_BY_BAND, age))
    return pa.table(
        {
            "person_id": _person_ids(rows, seed),
            "district": _decode_texts([d.name for d in region.DISTRICTS], district),
            "age": pa.array(age),
            "age_group": _decode_texts(region.AGE_GROUPS, _interval_index(region.AGE_GROUP_STARTS, age)),
            "sex": _decode_texts(region.SEXES, sex),
            "marital_status": _decode_texts(region.MARITAL, marital),
            "household_size": pa.array(household),
            "education": _decode_texts(region.EDUCATION, education),
            "employed": pa.array(employed),
            "occupation": _decode_texts(
                [o.name for o in region.OCCUPATIONS], occupation, _has_worked(random, age, employed)
            ),
            "income": pa.array(income),
            "commute_km": pa.array(_commute_km(random, occupation, district, income), mask=~employed),
            "move_in_date": pa.array(moved, mask=~move_known),
            "last_doctor_visit": pa.array(visit, mask=~_visit_known(random, visit, moved)),
            "health": _decode_texts(region.HEALTH, health, health_known),
            "voted": pa.array(_turnout(random, age, education, district), mask=age < region.FULL_AGE),
        }
    )


# ── persons and households ───────────────────────────────────────────────────────────────────────────────────


def _person_ids(rows: int, seed: int) -> pa.Array:
    """The letter T and nine digits, each number at most once."""
    numbers = ((np.arange(rows, dtype=np.int64) + seed % MAX_DEMO_ROWS) * ID_STEP) % MAX_DEMO_ROWS
    digits = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), width=9, padding="0")
    return pc.binary_join_element_wise("T", digits, "")


def _age(random: RandomColumns, district: IntColumn) -> IntColumn:
    """The age pyramid of the region, shifted towards the young or the old by district."""
    ages = np.arange(region.OLDEST + 1)
    pyramid = np.repeat(region.PYRAMID, 5)
    ageing = np.array([d.ageing for d in region.DISTRICTS])
    return random.choose("age", pyramid * np.exp(ageing[:, None] * (ages - 40) / 40), district)


def _sex(random: RandomColumns, age: IntColumn) -> IntColumn:
    """Fewer girls than boys at birth, more women than men in old age, a few diverse."""
    ages = np.arange(region.OLDEST + 1)
    women = region.WOMEN_AT_BIRTH + region.WOMEN_GAIN * np.maximum(0, ages - region.GAIN_FROM_AGE)
    return random.choose("sex", np.stack([women, 1 - women, np.full(len(ages), region.DIVERSE)], axis=1), age)


def _marital_status(random: RandomColumns, age: IntColumn, sex: IntColumn) -> IntColumn:
    """By age, and more widows than widowers; minors are single."""
    weights = np.repeat(np.array(region.MARITAL_BY_BAND)[:, None, :], len(region.SEXES), axis=1)
    weights[:, :, region.MARITAL.index("widowed")] *= region.WIDOWED_BY_SEX
    return random.choose("marital_status", _flatten_groups(weights), _band(age) * len(region.SEXES) + sex)


def _household_size(random: RandomColumns, age: IntColumn, marital: IntColumn, district: IntColumn) -> IntColumn:
    """By stage of life, larger in the country."""
    sizes = np.array(region.HOUSEHOLD_SIZES, dtype=np.int64)
    crowding = np.array(region.CROWDING, dtype=np.float64)[:, None] ** (sizes - 1)
    weights: FloatColumn = np.array(region.HOUSEHOLD_BY_STAGE)[:, None, :] * crowding
    married = marital == region.MARITAL.index("married")
    stages = [age < region.FULL_AGE, ~married & (age < 25), ~married & (age < 65), age < 65, ~married]
    stage = np.select(stages, range(len(stages)), default=len(stages))
    return sizes[
        random.choose("household_size", _flatten_groups(weights), stage * len(region.CROWDING) + _settlement(district))
    ]


# ── school and work ──────────────────────────────────────────────────────────────────────────────────────────


def _education(random: RandomColumns, age: IntColumn, sex: IntColumn) -> IntColumn:
    """By birth cohort: among the old, men have more degrees; among the young, women do."""
    weights = np.repeat(np.array(region.EDUCATION_BY_BAND)[:, None, :], len(region.SEXES), axis=1)
    women = np.array(region.WOMEN_DEGREES)
    weights[:, :, region.FIRST_DEGREE :] *= np.stack([women, 2 - women, np.ones(len(women))], axis=1)[:, :, None]
    return random.choose("education", _flatten_groups(weights), _band(age) * len(region.SEXES) + sex)


def _employment(
    random: RandomColumns, age: IntColumn, sex: IntColumn, education: IntColumn, household: IntColumn
) -> BoolColumn:
    """By age and education; women in large households stay at home more often."""
    usual = _by_band(region.EMPLOYED_BY_BAND, age)
    levels = np.where((age >= 25) & (age < 65), education - region.EDUCATION.index("vocational"), 0)
    first, end = region.CARE_AGES
    caring = (sex == region.SEXES.index("female")) & (age >= first) & (age < end)
    care = region.CARE_COST * np.clip(household - 2, 0, 3) * caring
    share = np.minimum(usual + region.EMPLOYED_PER_LEVEL * levels - care, region.MAX_EMPLOYED)
    return random.bernoulli("employed", share)


def _occupation(random: RandomColumns, district: IntColumn, sex: IntColumn, education: IntColumn) -> IntColumn:
    """The present or last occupation, by education, sex and settlement together."""
    jobs = region.OCCUPATIONS
    away = np.arange(len(region.EDUCATION))[:, None] - np.array([o.level for o in jobs])
    fit = np.exp(-0.5 * (away / region.LEVEL_SPREAD) ** 2) * [o.share for o in jobs]
    women = np.array([o.women for o in jobs])
    lean = np.stack([women, 1 - women, np.full(len(jobs), 0.5)])
    by_settlement = np.array([o.by_settlement for o in jobs]).T
    weights = fit[:, None, None, :] * lean[None, :, None, :] * by_settlement
    group = (education * len(lean) + sex) * len(by_settlement) + _settlement(district)
    return random.choose("occupation", _flatten_groups(weights), group)


def _has_worked(random: RandomColumns, age: IntColumn, employed: BoolColumn) -> BoolColumn:
    """Whether a person has an occupation: everybody with a job, and most older people without one."""
    never = random.bernoulli("never worked", np.where(age < 25, *region.NEVER_WORKED))
    return employed | (~never & (age >= region.FULL_AGE))


def _income(
    random: RandomColumns,
    occupation: IntColumn,
    education: IntColumn,
    age: IntColumn,
    sex: IntColumn,
    district: IntColumn,
) -> IntColumn:
    """Crowns a year in this occupation: log-normal, with a gap between the sexes that depends on the district."""
    entry = np.log([o.pay for o in region.OCCUPATIONS])[occupation] + region.PAY_PER_LEVEL * (education - 3)
    years = np.clip(age - np.array(region.SCHOOL_LEAVING_AGE)[education], 0, region.MAX_EXPERIENCE)
    experience = region.PAY_PER_YEAR * years + region.PAY_PER_SQUARED_YEAR * years**2
    women = sex == region.SEXES.index("female")
    local = np.log(_district_value("wages", district)) - _district_value("gap", district) * women
    apprentice = np.log(region.APPRENTICE_PAY) * (age < region.FULL_AGE)
    exact = np.exp(entry + experience + local + apprentice + region.PAY_SPREAD * random.normal("income"))
    return _round_as_people_do(random, np.clip(exact, region.MIN_INCOME, region.MAX_INCOME))


def _round_as_people_do(random: RandomColumns, exact: FloatColumn) -> IntColumn:
    """Round to the units that people use when they report an income."""
    steps, shares = zip(*region.ROUNDING_STEPS, strict=True)
    step: IntColumn = np.array(steps)[random.choose("heap", [shares], np.zeros(len(exact), dtype=np.int64))]
    return np.rint(exact / step).astype(np.int64) * step


def _commute_km(random: RandomColumns, occupation: IntColumn, district: IntColumn, income: IntColumn) -> FloatColumn:
    """Kilometers to work, with one decimal: longer in the country and for higher incomes, 0 for work at home."""
    pay = np.log(np.maximum(income, region.MIN_INCOME) / region.COMMUTE_PAY)
    usual = np.log(region.COMMUTE_KM)[_settlement(district)] + region.COMMUTE_FOR_PAY * pay
    exact = np.exp(usual + region.COMMUTE_SPREAD * random.normal("commute"))
    rounded = np.rint(np.clip(exact, region.MIN_KM, region.MAX_KM) * 10) / 10
    at_home = random.bernoulli("at home", np.array([o.at_home for o in region.OCCUPATIONS])[occupation])
    return np.where(at_home, 0.0, rounded)


# ── dates, health and votes ──────────────────────────────────────────────────────────────────────────────────


def _move_in_date(random: RandomColumns, age: IntColumn, district: IntColumn) -> DateColumn:
    """An exponential time before the last day, but not before birth; often the first of a month."""
    born = _birth_date(random, age)
    mean = _by_band(region.YEARS_SINCE_MOVE, age) * 365.25 * np.array(region.MOVE_TIME_FACTORS)[_settlement(district)]
    moved = np.maximum(born, _last_day() - _waiting_days(random, "move", mean))
    first = moved.astype("datetime64[M]").astype("datetime64[D]")
    on_first = random.bernoulli("first of month", region.FIRST_OF_MONTH) & (first >= born)
    return np.where(on_first, first, moved)


def _birth_date(random: RandomColumns, age: IntColumn) -> DateColumn:
    """A uniformly distributed day of the year of birth."""
    year = (region.LAST_YEAR - 1970 - age).astype("datetime64[Y]")
    start, end = year.astype("datetime64[D]"), (year + 1).astype("datetime64[D]")
    days = (end - start).astype(np.int64)
    born: DateColumn = start + np.floor(days * random.uniform("birthday")).astype("timedelta64[D]")
    return born


def _health(random: RandomColumns, age: IntColumn, education: IntColumn, employed: BoolColumn) -> IntColumn:
    """Health declines with age, more slowly with education and with a job."""
    levels = (education - region.EDUCATION.index("vocational")) * (age >= region.HEALTH_LEVELS_FROM_AGE)
    usual = region.HEALTH_AT_BIRTH + region.HEALTH_PER_YEAR * age + region.HEALTH_PER_LEVEL * levels
    return _interval_index(region.HEALTH_CUTS, usual + region.HEALTH_WITH_JOB * employed + random.normal("health")) + 1


def _last_doctor_visit(random: RandomColumns, health: IntColumn, age: IntColumn, sex: IntColumn) -> DatetimeColumn:
    """An exponential time before the last day, shorter with poor health; on a weekday, in office hours."""
    first, end = region.YOUNG_MEN
    reluctant = (sex == region.SEXES.index("male")) & (age >= first) & (age < end)
    mean = np.array(region.DAYS_SINCE_VISIT)[health] * np.where(reluctant, region.YOUNG_MEN_FACTOR, 1.0)
    day = np.busday_offset(_last_day() - _waiting_days(random, "visit", mean), 0, roll="backward")
    rush = random.choose("hour", [region.OFFICE_RUSH], np.zeros(random.rows, dtype=np.int64))
    minute = np.floor(60 * random.uniform("minute")).astype(np.int64)
    minute -= np.where(random.bernoulli("appointment", region.EVERY_TEN_MINUTES), minute % 10, 0)
    time = np.array(region.OFFICE_HOURS)[rush] * 60 + minute
    instant: DatetimeColumn = (day.astype("datetime64[m]") + time.astype("timedelta64[m]")).astype("datetime64[s]")
    return instant


def _visit_known(random: RandomColumns, visit: DatetimeColumn, moved: DateColumn) -> BoolColumn:
    """Whether a practice of the region has recorded the visit."""
    kept = visit >= np.datetime64(f"{region.VISITS_FROM_YEAR}-01-01")
    return kept & (visit >= moved) & ~random.bernoulli("no doctor", region.NO_DOCTOR)


def _turnout(random: RandomColumns, age: IntColumn, education: IntColumn, district: IntColumn) -> BoolColumn:
    """Turnout increases with age; education matters mostly among the young."""
    years = np.minimum(age, region.VOTED_UNTIL_AGE) - region.FULL_AGE
    levels = education - region.EDUCATION.index("vocational")
    share = region.VOTED + region.VOTED_PER_YEAR * years + np.where(age < 35, *region.VOTED_PER_LEVEL) * levels
    share += _district_value("turnout", district)
    return random.bernoulli("voted", np.clip(share, region.MIN_VOTED, region.MAX_VOTED))


# ── access to the parameters ───────────────────────────────────────────────────────────────────────────────────


def _interval_index(starts: Sequence[float], values: NDArray[np.generic]) -> IntColumn:
    """The index of the last of ``starts`` that is not above the value."""
    return np.searchsorted(np.asarray(starts), values, side="right") - 1


def _band(age: IntColumn) -> IntColumn:
    return _interval_index(region.BANDS, age)


def _by_band(numbers: Sequence[float], age: IntColumn) -> FloatColumn:
    return np.asarray(numbers, dtype=np.float64)[_band(age)]


def _district_value(field: str, district: IntColumn) -> FloatColumn:
    return np.array([getattr(d, field) for d in region.DISTRICTS], dtype=np.float64)[district]


def _settlement(district: IntColumn) -> IntColumn:
    return np.array([d.settlement for d in region.DISTRICTS])[district]


def _last_day() -> np.datetime64:
    return np.datetime64(f"{region.LAST_YEAR}-12-31", "D")


def _waiting_days(random: RandomColumns, name: str, mean_days: FloatColumn) -> NDArray[np.timedelta64]:
    """Whole days, exponentially distributed."""
    return np.floor(-mean_days * np.log1p(-random.uniform(name))).astype("timedelta64[D]")


def _flatten_groups(weights: FloatColumn) -> FloatColumn:
    """A table with one row for every combination of groups and one column for every choice."""
    return weights.reshape(-1, weights.shape[-1])


def _decode_texts(values: Sequence[str], codes: IntColumn, known: BoolColumn | None = None) -> pa.Array:
    """The values as text; null if they are not known."""
    indices = pa.array(codes.astype(np.int32), mask=None if known is None else ~known)
    return pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string())).cast(pa.string())
