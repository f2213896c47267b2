"""The invented region: all parameters of the example table.

Nothing here was estimated from data. The numbers were chosen to give the table the features that make real registers
hard to imitate: skewed and rare categories, spikes, heaping, missing cells that carry information, and three-way
interactions that no pair of attributes shows. Weights need not add up to one.
"""

from __future__ import annotations

from typing import NamedTuple

LAST_YEAR = 2024
"""The table describes the last day of this year, so a person born in year y is ``LAST_YEAR − y`` years old."""

OLDEST = 104
"""The highest age; the oldest people were born in 1920."""

FULL_AGE = 18
"""The age from which people marry and vote."""

SEXES = ("female", "male", "diverse")
WOMEN_AT_BIRTH, WOMEN_GAIN, GAIN_FROM_AGE = 0.488, 0.005, 50  # fewer girls are born; each year past 50 adds women
DIVERSE = 0.004  # rare on purpose: about 80 of 20 000 rows


class District(NamedTuple):
    """A district: its population, type of settlement, age structure, wages and turnout."""

    name: str
    share: float  # of the inhabitants; skewed, from a capital to a valley
    settlement: int  # 0 city, 1 town, 2 country
    ageing: float  # tilt of the age pyramid: negative where people are young
    wages: float  # pay in relation to the region's
    gap: float  # log points by which women earn less: a three-way interaction of sex, district and income
    turnout: float  # added to the share of voters


DISTRICTS = (
    District("Velmora", 0.280, 0, -0.35, 1.15, 0.22, 0.02),
    District("Karnhythe", 0.180, 0, -0.20, 1.05, 0.05, -0.06),
    District("Ostrindle", 0.125, 1, 0.00, 1.00, 0.16, 0.01),
    District("Brellwick", 0.095, 1, -0.10, 0.97, 0.30, -0.03),
    District("Tansholm", 0.080, 1, 0.10, 1.02, 0.10, 0.05),
    District("Quorrin", 0.065, 1, 0.05, 0.92, 0.02, -0.08),
    District("Fennavale", 0.055, 2, 0.20, 0.90, 0.26, 0.04),
    District("Sildrake", 0.040, 2, 0.15, 0.95, 0.12, 0.00),
    District("Ulvency", 0.032, 2, 0.30, 0.86, 0.18, 0.03),
    District("Pethermoor", 0.023, 2, 0.35, 0.84, 0.06, -0.04),
    District("Dunskarrow", 0.015, 2, 0.45, 0.80, 0.28, 0.08),
    District("Ysendral Vale", 0.010, 2, 0.55, 0.82, 0.00, 0.06),
)

PYRAMID = (48, 50, 50, 51, 58, 64, 66, 66, 63, 60, 66, 70, 63, 54, 47, 38, 30, 18, 7.5, 2, 0.3)
"""Inhabitants by age, in groups of five years from 0 to 104: few children, a bulge in the fifties."""

BANDS = (0, 12, 15, 18, 25, 35, 45, 55, 65, 75, 85)
"""The first ages of the age bands; the tables below have one row or number per band."""

MARITAL = ("single", "married", "divorced", "widowed")
MARITAL_BY_BAND = (
    (1, 0, 0, 0),
    (1, 0, 0, 0),
    (1, 0, 0, 0),
    (0.940, 0.055, 0.005, 0.000),
    (0.620, 0.345, 0.033, 0.002),
    (0.300, 0.600, 0.095, 0.005),
    (0.190, 0.630, 0.165, 0.015),
    (0.120, 0.650, 0.190, 0.040),
    (0.070, 0.640, 0.170, 0.120),
    (0.050, 0.530, 0.110, 0.310),
    (0.050, 0.270, 0.070, 0.610),
)
WIDOWED_BY_SEX = (1.6, 0.5, 1.0)  # women outlive their husbands

HOUSEHOLD_SIZES = (1, 2, 3, 4, 5, 6, 7, 8)
HOUSEHOLD_BY_STAGE = (
    (0.00, 0.08, 0.27, 0.38, 0.16, 0.07, 0.03, 0.01),  # minors, who never live alone
    (0.28, 0.25, 0.20, 0.17, 0.06, 0.025, 0.01, 0.005),  # unmarried, below 25
    (0.52, 0.22, 0.14, 0.08, 0.025, 0.01, 0.003, 0.002),  # unmarried, 25 to 64
    (0.02, 0.30, 0.22, 0.29, 0.11, 0.04, 0.015, 0.005),  # married, below 65
    (0.78, 0.14, 0.05, 0.02, 0.005, 0.003, 0.001, 0.001),  # unmarried, from 65
    (0.03, 0.83, 0.09, 0.03, 0.010, 0.005, 0.003, 0.002),  # married, from 65
)
CROWDING = (0.85, 1.0, 1.25)  # weight per further member of a household in city, town and country

EDUCATION = ("none", "primary", "secondary", "vocational", "bachelor", "master", "doctorate")
EDUCATION_BY_BAND = (
    (1, 0, 0, 0, 0, 0, 0),
    (0.30, 0.70, 0, 0, 0, 0, 0),
    (0.03, 0.72, 0.25, 0, 0, 0, 0),
    (0.01, 0.07, 0.52, 0.22, 0.16, 0.020, 0.000),
    (0.01, 0.05, 0.17, 0.30, 0.24, 0.200, 0.030),
    (0.01, 0.06, 0.18, 0.34, 0.20, 0.180, 0.030),
    (0.01, 0.08, 0.20, 0.40, 0.15, 0.135, 0.025),
    (0.02, 0.12, 0.22, 0.41, 0.11, 0.100, 0.020),
    (0.03, 0.18, 0.24, 0.37, 0.08, 0.085, 0.015),
    (0.05, 0.28, 0.26, 0.29, 0.05, 0.060, 0.010),
    (0.09, 0.40, 0.25, 0.20, 0.025, 0.030, 0.005),
)
FIRST_DEGREE = EDUCATION.index("bachelor")
WOMEN_DEGREES = (1, 1, 1, 1.30, 1.35, 1.20, 1.05, 0.85, 0.65, 0.50, 0.40)
"""By band, the odds of a degree for women relative to the average; those of men are lower by as much. The sign of the
dependence changes between cohorts, so education and sex look nearly independent without age."""

SCHOOL_LEAVING_AGE = (15, 15, 18, 19, 22, 24, 28)  # by education; experience counts from there

EMPLOYED_BY_BAND = (0, 0, 0.06, 0.55, 0.84, 0.87, 0.87, 0.70, 0.12, 0.02, 0.004)
EMPLOYED_PER_LEVEL = 0.03  # each level of education above or below vocational, from 25 to 64
CARE_AGES = (25, 55)  # from, to below
CARE_COST = 0.11  # for women of these ages, each member of the household beyond two, three at most
MAX_EMPLOYED = 0.97
NEVER_WORKED = (0.75, 0.10)  # share of those without a job, below 25 and from 25


class Occupation(NamedTuple):
    """An occupation: its share, typical education, share of women, regional distribution and pay."""

    name: str
    share: float  # of the jobs, before the effects of education, sex and settlement
    level: float  # the most typical education, as an index into EDUCATION
    women: float  # share of women
    by_settlement: tuple[float, float, float]  # how common it is in city, town and country
    pay: float  # crowns a year for a beginner
    at_home: float  # share that works at home


OCCUPATIONS = (
    Occupation("assembler", 0.06, 2.2, 0.25, (0.7, 1.4, 0.9), 23_000, 0.00),
    Occupation("builder", 0.07, 2.4, 0.04, (0.9, 1.0, 1.2), 24_500, 0.00),
    Occupation("caretaker", 0.04, 1.5, 0.30, (1.2, 1.0, 0.7), 19_500, 0.00),
    Occupation("cleaner", 0.05, 1.0, 0.82, (1.2, 1.0, 0.8), 16_500, 0.00),
    Occupation("clerk", 0.10, 3.0, 0.70, (1.2, 1.0, 0.7), 24_000, 0.18),
    Occupation("cook", 0.04, 2.5, 0.45, (1.2, 1.0, 0.8), 19_000, 0.00),
    Occupation("craft worker", 0.07, 3.0, 0.12, (0.8, 1.2, 1.1), 25_000, 0.02),
    Occupation("driver", 0.05, 2.0, 0.07, (1.0, 1.0, 1.1), 22_500, 0.00),
    Occupation("electrician", 0.04, 3.1, 0.05, (0.9, 1.1, 1.1), 27_000, 0.00),
    Occupation("engineer", 0.05, 4.8, 0.18, (1.2, 1.1, 0.5), 40_000, 0.25),
    Occupation("farmer", 0.04, 2.4, 0.35, (0.02, 0.5, 4.0), 18_500, 0.65),
    Occupation("forester", 0.01, 3.0, 0.15, (0.02, 0.4, 5.0), 21_000, 0.05),
    Occupation("lawyer", 0.02, 5.2, 0.48, (1.8, 0.6, 0.3), 46_000, 0.15),
    Occupation("manager", 0.05, 4.6, 0.32, (1.4, 0.9, 0.6), 47_000, 0.20),
    Occupation("nurse", 0.08, 3.4, 0.86, (1.0, 1.1, 0.9), 26_500, 0.00),
    Occupation("physician", 0.02, 5.7, 0.50, (1.2, 1.0, 0.7), 58_000, 0.01),
    Occupation("programmer", 0.04, 4.4, 0.20, (1.8, 0.7, 0.4), 39_000, 0.55),
    Occupation("researcher", 0.01, 6.0, 0.44, (2.0, 0.4, 0.1), 37_000, 0.30),
    Occupation("sales assistant", 0.10, 2.3, 0.67, (1.1, 1.1, 0.8), 18_500, 0.01),
    Occupation("teacher", 0.06, 4.9, 0.71, (1.0, 1.0, 1.0), 33_000, 0.05),
)
LEVEL_SPREAD = 0.9  # standard deviation, in levels of education, around the most typical level

PAY_PER_LEVEL = 0.06  # log points
PAY_PER_YEAR, PAY_PER_SQUARED_YEAR, MAX_EXPERIENCE = 0.024, -0.00030, 40  # rises, and flattens after forty years
PAY_SPREAD = 0.33  # standard deviation of log pay among equals
APPRENTICE_PAY = 0.35  # of the full pay, below full age
MIN_INCOME, MAX_INCOME = 1_000, 250_000  # values beyond are reported as the bound
ROUNDING_STEPS = ((1_000, 0.40), (500, 0.20), (1, 0.40))  # units that incomes are rounded to, and their shares

COMMUTE_KM = (4.5, 8.0, 15.0)  # median of those who travel, in city, town and country
COMMUTE_SPREAD = 0.75  # standard deviation of log distance
COMMUTE_FOR_PAY = 0.35  # the better paid travel further: elasticity to income around COMMUTE_PAY
COMMUTE_PAY = 30_000
MIN_KM, MAX_KM = 0.1, 150.0

YEARS_SINCE_MOVE = (9, 12, 12, 4, 4, 9, 15, 22, 28, 30, 18)  # mean by band; a move before birth is the birth itself
MOVE_TIME_FACTORS = (0.7, 1.0, 1.5)  # times that, in city, town and country
FIRST_OF_MONTH = 0.45  # share of the moves
MOVE_UNKNOWN = (0.06, 0.13)  # below 75 and from 75

HEALTH = ("very poor", "poor", "fair", "good", "very good")
HEALTH_CUTS = (-2.0, -1.1, -0.1, 1.1)  # on a latent scale with unit spread
HEALTH_AT_BIRTH, HEALTH_PER_YEAR = 2.0, -0.028
HEALTH_PER_LEVEL, HEALTH_LEVELS_FROM_AGE = 0.16, 35  # education has an effect only later in life
HEALTH_WITH_JOB = 0.30
HEALTH_UNKNOWN_BY_BAND = (0.60, 0.45, 0.30, 0.18, 0.12, 0.06, 0.05, 0.04, 0.04, 0.05, 0.08)

DAYS_SINCE_VISIT = (90, 170, 330, 560, 430)  # mean, by health from very poor to very good
YOUNG_MEN, YOUNG_MEN_FACTOR = (18, 40), 2.2  # they go less often
VISITS_FROM_YEAR = 2020  # practices keep their books for five years
NO_DOCTOR = 0.05
OFFICE_HOURS = (8, 9, 10, 11, 14, 15, 16, 17)  # closed at noon and, as on weekends, from six
OFFICE_RUSH = (1.6, 1.7, 1.5, 1.0, 1.0, 1.2, 1.1, 0.6)
EVERY_TEN_MINUTES = 0.7  # share of visits by appointment; the others start at any minute

VOTED = 0.42  # of those of 18 years with vocational education
VOTED_PER_YEAR, VOTED_UNTIL_AGE = 0.006, 70
VOTED_PER_LEVEL = (0.10, 0.03)  # below 35 and from 35: education matters mostly among the young
MIN_VOTED, MAX_VOTED = 0.05, 0.97

AGE_GROUPS = ("under 18", "18 to 29", "30 to 44", "45 to 64", "65 and over")
AGE_GROUP_STARTS = (0, 18, 30, 45, 65)
