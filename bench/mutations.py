"""Mutations that break the guarantee, each with the tests that should fail.

A mutation changes one part of one function of ``src/dpsyn``, which is located by its syntax (see ``bench.syntax``). The
mutated program must still run: the tests must detect a wrong answer, not a missing name.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.syntax import Change, Drop, Force, Replace

_BUDGET = "accounting/budget.py"
_RECONCILE = "accounting/reconcile.py"
_CERTIFICATE = "accounting/certificate.py"
_ATOMIC_FILES = "atomic_files.py"
_HASH_CHAIN = "accounting/hash_chain.py"
_HEAD_STORE = "accounting/head_store.py"
_CONVERSION = "accounting/conversion.py"
_EXACT_NUMBERS = "accounting/exact_numbers.py"
_LEDGER = "accounting/ledger.py"
_PRIVACY_UNIT = "accounting/privacy_unit.py"
_RUN = "accounting/run.py"
_COSTS = "accounting/costs.py"
_BOUNDING = "engines/contribution_bounding.py"
_UNIT_IDS = "encoding/unit_ids.py"
_ENGINE = "engines/engine.py"
_FACTORY = "engines/factory.py"
_BOUNDED_ROWS = "engines/bounded_rows.py"
_BASKET_ENGINE = "engines/baskets/engine.py"
_BOUNDED_BASKETS = "engines/baskets/bounded_baskets.py"
_BASKETS = "private/baskets.py"
_GATE = "private/gate.py"
_JOURNAL = "private/journal.py"
_APPEND_LOG = "private/append_log.py"
_MECHANISMS = "private/mechanisms.py"
_SESSION = "private/session.py"
_EXPONENTIAL = "private/exponential_mechanism.py"
_DISTANCES = "private/distances.py"
_TABLE = "private/table.py"
_REHEARSAL = "private/rehearsal.py"
_MEASURE = "recipes/_measure.py"
_PUBLIC_TABLE = "public/public_table.py"
_APPROVAL = "schema/approval.py"
_SCHEMA = "schema/schema.py"
_SCHEMA_DRAFT = "schema/schema_draft.py"
_ATTRIBUTES = "schema/attributes.py"
_COLUMN_TYPES = "encoding/column_types.py"
_COLUMN_CODECS = "encoding/column_codecs.py"
_CELL_SYNTAX = "encoding/cell_syntax.py"
_FILE_SYNTAX = "schema/file_syntax.py"
_STATISTICAL = "sources/statistical_files.py"
_SOURCE = "sources/source.py"
_CSV = "sources/csv.py"
_CSV_KERNELS = "sources/kernels.py"
_FILES = "sources/files.py"
_PANDAS = "sources/pandas.py"
_ARROW = "sources/arrow.py"
_ERRORS = "errors.py"
_SYNOPSIS_FILE = "synopsis/serialization/synopsis_file.py"
_ADDRESSES = "sources/addresses.py"
_DUCKDB = "sources/duckdb.py"
_POSTGRESQL = "sources/postgresql.py"
_ROW_WISE = "sources/row_wise.py"
_SQL_READER = "sources/sql_reader.py"
_SQL_TERMS = "sources/sql_terms.py"
_SQL_WHITELIST = "sources/sql_whitelist.py"
_SPARK = "engines/spark.py"
_QUERY_ENGINE = "query/engine.py"
_KEYS = "signatures/keys.py"
_STATEMENT = "signatures/statement.py"
_STAND_ALONE = "signatures/verify_release.py"
_VERIFY = "verification/_verify.py"
_MEASUREMENTS = "inference/measurements.py"

_APP_SECURITY = "app/security.py"
_APP_JOBS = "app/jobs.py"
_APP_WORKSPACE = "app/workspace.py"
_APP_BUDGET = "app/pages/budget.py"
_APP_SCHEMA = "app/pages/schema.py"
_APP_RELEASE = "app/pages/release.py"
_APP_LAYOUT = "app/layout.py"
_CHOOSE = "assessment/_choose.py"
_RELEASE_EVALUATION = "assessment/_release_evaluation.py"

_MODULE_LEVEL = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One way to break the source.

    Attributes:
        name: what is broken, in words.
        file: the path below ``src/dpsyn``.
        function: the qualified name of the function in the file; empty for the module level.
        change: the change; its pattern must match exactly once in the function.
        tests: the test files of which one should fail.
    """

    name: str
    file: str
    function: str
    change: Change
    tests: tuple[str, ...]


def _break(name: str, file: str, function: str, change: Change, *tests: str) -> Mutation:
    files = tuple(f"tests/{test}.py" for test in tests)
    return Mutation(name=name, file=file, function=function, change=change, tests=files)


_NOISE = (
    _break(
        "σ is halved",
        _MECHANISMS,
        "_opendp_measurement",
        Replace("A.sigma", "A.sigma / 2"),
        "private/test_noise",
    ),
    _break(
        "the scale of Laplace noise is halved",
        _MECHANISMS,
        "_opendp_measurement",
        Replace("A.scale", "A.scale / 2"),
        "private/test_noise",
    ),
    _break(
        "noise is not compared with OpenDP's privacy map",
        _MECHANISMS,
        "_opendp_measurement",
        Drop("_check_privacy_map(...)"),
        "private/test_noise",
    ),
    _break(
        "OpenDP's privacy map is compared with twice the charge",
        _MECHANISMS,
        "_check_privacy_map",
        Replace("A <= B", "A <= 2 * B"),
        "private/test_noise",
    ),
    _break(
        "empty cells get no noise",
        _MECHANISMS,
        "_add_noise_to_chunk",
        Replace("np.array(M(V), T)", "np.where(V == 0, 0, np.array(M(V), T))"),
        "private/test_noise",
    ),
    _break(
        "all cells of a chunk get the same noise",
        _MECHANISMS,
        "_add_noise_to_chunk",
        Replace("np.array(M(V), T)", "V + (M(V[:1])[0] - V[0])"),
        "private/test_noise",
    ),
    _break(
        "all chunks of a scale get the same noise",
        _MECHANISMS,
        "_add_noise_to_chunk",
        Replace(
            "return np.array(M(V), T)",
            """
            noise = M(np.zeros(NOISE_CHUNK, T))
            return V + np.array(_add_noise_to_chunk.__dict__.setdefault(id(M), noise)[: len(V)])
            """,
        ),
        "private/test_noise",
    ),
    _break(
        "all answers of a question get the noise of the first",
        _MECHANISMS,
        "SystemNoise.add_noise",
        Replace("(... for A, B in D for C in F(A, X))", "D[0][1]"),
        "private/test_noise",
    ),
    _break(
        "noise comes from a seed",
        _MECHANISMS,
        "SystemNoise.add_noise",
        Replace(
            "C = P.map(F, (... for A, B in D for E in G))",
            """
            rng = np.random.default_rng(0)
            C = [
                np.rint(
                    rng.normal(A.ravel() * 2.0**B.lattice, B.sigma * 2.0**B.lattice)
                    if isinstance(B, Gaussian)
                    else rng.laplace(A.ravel(), B.scale)
                ).astype(np.int64)
                for A, B in D
            ]
            """,
        ),
        "private/test_noise",
    ),
    _break(
        "scores are released without noise",
        _TABLE,
        "PrivateTable._release_scores",
        Replace("A / np.float64(B)", "self._count_scores(axes_list, score)[0].astype(np.float64)"),
        "private/test_noise",
    ),
    _break(
        "injected noise is not marked as not private",
        _SESSION,
        "_run_terms",
        Replace("F(..., uses_real_noise=X)", "True"),
        "private/test_table",
    ),
    _break(
        "the mark of injected noise is lost when a run is resumed",
        _RUN,
        "Run.resume",
        Replace("F(..., uses_real_noise=X)", "True"),
        "accounting/test_ledger",
    ),
    _break(
        "the mark of injected noise is lost when a certificate is read",
        _CERTIFICATE,
        "Certificate.from_data",
        Replace("F(..., uses_real_noise=X)", "True"),
        "accounting/test_certificate",
        "private/test_table",
    ),
    _break(
        "any privacy flag of a certificate counts as real noise",
        _CERTIFICATE,
        "parse_privacy_flag",
        Replace("A[B] is True", "B in A"),
        "accounting/test_certificate",
    ),
)

_SENSITIVITY = (
    _break(
        "marginals are charged for one row",
        _BUDGET,
        "marginal_cost",
        Replace("Gaussian.for_rho(A, X)", "1"),
        "private/test_sensitivity",
    ),
    _break(
        "marginals of a pure budget are charged for one row",
        _BUDGET,
        "marginal_cost",
        Replace("Laplace.for_epsilon(A, X)", "1"),
        "private/test_sensitivity",
    ),
    _break(
        "a mixed budget counts as pure",
        _BUDGET,
        "Budget.is_pure",
        Replace("A.rho == 0", "True"),
        "accounting/test_budget",
    ),
    _break(
        "a budget with thresholds counts as pure",
        _BUDGET,
        "Budget.is_pure",
        Replace("A.threshold_delta == 0", "True"),
        "accounting/test_budget",
    ),
    _break(
        "pure steps beyond ε count as pure",
        _BUDGET,
        "Budget.is_pure",
        Replace("A <= B", "True"),
        "accounting/test_budget",
    ),
    _break(
        "marginals with Laplace noise are charged for one row",
        _TABLE,
        "PrivateTable.measure_laplace",
        Replace("Laplace.for_epsilon(A, X)", "1"),
        "private/test_sensitivity",
    ),
    _break(
        "ranges are charged for one row",
        _TABLE,
        "PrivateTable.discover_range",
        Replace("Gaussian.for_rho(A, X)", "1"),
        "private/test_sensitivity",
    ),
    _break(
        "values are charged for one row",
        _TABLE,
        "PrivateTable.discover_values",
        Replace("Gaussian.for_rho(A, X)", "1"),
        "private/test_sensitivity",
    ),
    _break(
        "scores are charged for one row",
        _TABLE,
        "PrivateTable._score_cost",
        Replace("A.score_sensitivity(B)", "B"),
        "private/test_sensitivity",
    ),
    _break(
        "choices by distance are charged for one row",
        _TABLE,
        "PrivateTable.choose_worst_prediction",
        Replace("A.score_sensitivity(1)", "1"),
        "private/test_sensitivity",
    ),
    _break(
        "choices by distance are charged as monotone",
        _TABLE,
        "PrivateTable.choose_worst_prediction",
        Replace("Exponential.for_epsilon(A, B)", "Exponential.for_epsilon(A, B, monotone=True)"),
        "private/test_sensitivity",
    ),
    _break(
        "the distances of a choice change by two for each row",
        _TABLE,
        "_distance_from",
        Replace("int(A)", "2 * int(A)"),
        "private/test_sensitivity",
    ),
    _break(
        "Fourier coefficients are charged for one row",
        _TABLE,
        "PrivateTable.measure_fourier",
        Replace("A.score_sensitivity(1)", "1"),
        "private/test_fourier_sensitivity",
    ),
    _break(
        "many Fourier coefficients are charged as one, with Gaussian noise",
        _TABLE,
        "PrivateTable.measure_fourier",
        Replace("A * B**2", "B**2"),
        "private/test_fourier_sensitivity",
    ),
    _break(
        "many Fourier coefficients are charged as one, with Laplace noise",
        _TABLE,
        "PrivateTable.measure_fourier",
        Replace("Laplace.for_epsilon(A, X)", "delta"),
        "private/test_fourier_sensitivity",
    ),
    _break(
        "many scores are charged as one",
        _TABLE,
        "PrivateTable._score_cost",
        Replace("A * B", "B"),
        "private/test_sensitivity",
    ),
    _break(
        "InDif is charged as if a row changed it by 1",
        _TABLE,
        "PrivateTable.score_indif",
        Replace("self._score_cost(A, B, X)", "1"),
        "private/test_sensitivity",
    ),
    _break(
        "predictions are not rounded",
        _TABLE,
        "PrivateTable._round_prediction",
        Replace("np.asarray(np.rint(A), T)", "np.asarray(A, np.float64)"),
        "private/test_table",
    ),
    _break(
        "k rows of a person are charged as √k",
        _PRIVACY_UNIT,
        "PrivacyUnit.l2_sensitivity_squared",
        Replace("A**2", "A"),
        "accounting/test_costs",
    ),
    _break(
        "a replaced unit is charged like a removed one",
        _PRIVACY_UNIT,
        "PrivacyUnit._changed_units",
        Replace("return X", "1"),
        "accounting/test_costs",
    ),
    _break(
        "a recoding whose methods see rows is accepted",
        _TABLE,
        "PrivateTable.recode",
        Force("not plain", False),
        "private/test_table",
    ),
    _break(
        "bounds are read off exact counts",
        _TABLE,
        "PrivateTable.discover_range",
        Replace(
            "R = F(M, Q, lambda: E, ...)\nN = G(H, (X := K(A, R)))",
            "Marginal(A, E, 0, cost.std)",
        ),
        "private/test_sensitivity",
        "private/test_table",
    ),
)

_CHARGES = (
    _break(
        "marginals are not charged",
        _TABLE,
        "PrivateTable._measure_axes",
        Replace(
            "self._release(M, Q, lambda: E, ...)",
            "[*map(Released, self._session.mechanisms.add_noise([*zip(E, costs, strict=True)]), costs)]",
        ),
        "private/test_table",
    ),
    _break(
        "fine histograms are not charged",
        _TABLE,
        "PrivateTable.measure_fine_histogram",
        Replace(
            "self._release_one(M, Q, lambda: E, ...)",
            "Released(self._session.mechanisms.add_noise([(E, cost)])[0], cost)",
        ),
        "private/test_table",
    ),
    _break(
        "scores are not charged",
        _TABLE,
        "PrivateTable._release_scores",
        Replace(
            "self._release_one(M, Q, C, ...)",
            "Released(self._session.mechanisms.add_noise([(C(), cost)])[0], cost)",
        ),
        "private/test_table",
    ),
    _break(
        "discovered values are not charged",
        _TABLE,
        "PrivateTable.discover_values",
        Replace(
            "self._release(D, Q, lambda: [E])",
            "[Released(tuple(self._session.mechanisms.select_partitions(E, cost)), cost)]",
        ),
        "private/test_table",
    ),
    _break(
        "ranges are not charged",
        _TABLE,
        "PrivateTable.discover_range",
        Replace(
            "self._release_one(M, Q, lambda: E, ...)",
            "Released(self._session.mechanisms.add_noise([(E, cost)])[0], cost)",
        ),
        "private/test_table",
    ),
    _break(
        "no answer is charged",
        _GATE,
        "Session.commit",
        Drop("self.run.charge_all(A, B)"),
        "private/test_journal",
    ),
    _break(
        "without a journal no answer is charged",
        _GATE,
        "Session.commit",
        Drop("self.run.charge_all(A)"),
        "private/test_table",
    ),
    _break(
        "measurements are written to no ledger",
        _RUN,
        "Run.charge_all",
        Drop("A = B.ledger.record(...)"),
        "private/test_crash_safety",
    ),
    _break(
        "rows are read before the budget is reserved",
        _SESSION,
        "open_private",
        Replace(
            "N = M or SystemNoise()\n*R\nC = F(S, lambda: E)",
            "N = M or SystemNoise()\nE.prepare()\n*R\nC = F(S, lambda: E)",
        ),
        "private/test_table",
    ),
    _break(
        "threads that share a run are charged at the same time",
        _RUN,
        "Run.charge_all",
        Replace("with A._lock:\n    *B", "if True:\n    *B"),
        "accounting/test_ledger",
    ),
    _break(
        "InDif of three attributes is charged like that of two",
        _TABLE,
        "PrivateTable.score_indif",
        Force("any(len(A) != 2 for A in B)", False),
        "private/test_table",
    ),
    _break(
        "a prediction may be so large that sums overflow",
        _TABLE,
        _MODULE_LEVEL,
        Replace("MAX_PREDICTION = X", "2**62"),
        "private/test_table",
    ),
    _break(
        "the error of a failing engine is shown",
        _GATE,
        "without_leaking_errors",
        Replace(
            """
            try:
                ...
            except X as E:
                ...
            except Exception as F:
                ...
            """,
            "Exception",
        ),
        "private/test_table",
    ),
    _break(
        "an approval hides that an entry was drafted from the data",
        _APPROVAL,
        "_edits",
        Replace('"approved"', '"public"'),
        "schema/test_approval",
    ),
    _break(
        "all entries are approved at once, whether or not a remark is open",
        _APPROVAL,
        "_Yes.covers",
        Force("A.remark", False),
        "schema/test_approval",
    ),
    _break(
        "what was read off the data is approved without a separate yes",
        _APPROVAL,
        "_Yes.covers",
        Replace("A.as_drafted or not B.unchanged", "True"),
        "schema/test_approval",
    ),
    _break(
        "a public schema may carry remarks about rows",
        _ATTRIBUTES,
        "check_provenance",
        Force('A.remark and B.provenance != "data"', False),
        "schema/test_approval",
    ),
    _break(
        "a public schema may carry digests of drafted values",
        _ATTRIBUTES,
        "check_provenance",
        Force('A.drafted and B.provenance != "data" and C', False),
        "schema/test_approval",
    ),
    _break(
        "the certificate does not state what was drafted from the data",
        _SCHEMA,
        "_describe_declaration",
        Force('A == "approved"', False),
        "schema/test_approval",
    ),
    _break(
        "a synopsis may hold arrays that nobody compared with their digests",
        _SYNOPSIS_FILE,
        "unpack_synopsis",
        Drop("A.require_all_read()"),
        "synopsis/test_serialization",
    ),
    _break(
        "any ε is released without a question",
        _MEASURE,
        "measure",
        Drop("check_large_epsilon(...)"),
        "accounting/test_large_epsilon",
    ),
    _break(
        "a drafted schema is released",
        _SESSION,
        "open_private",
        Drop("A.require_public()"),
        "private/test_table",
    ),
)

_ACCOUNTING = (
    _break(
        "Gaussian noise beyond the budget is allowed",
        _BUDGET,
        "_describe_excess",
        Force("A > B.rho", False),
        "accounting/test_ledger",
    ),
    _break(
        "thresholds beyond the budget are allowed",
        _BUDGET,
        "_describe_excess",
        Force("A.delta > B.threshold_delta", False),
        "accounting/test_budget",
        "accounting/test_certificate",
        "accounting/test_ledger",
    ),
    _break(
        "pure steps beyond the budget are allowed",
        _BUDGET,
        "_describe_excess",
        Force("not F(A.pure_epsilons, B.pure_epsilons)", False),
        "accounting/test_budget",
        "accounting/test_certificate",
        "accounting/test_ledger",
    ),
    _break(
        "a run records measurements without checking its account",
        _RUN,
        "Run.check_charge",
        Replace(
            "A = A.charge(D)",
            "A = Account(budget=A.budget, measurements=(*A.measurements, D), total=A.total.compose(D.cost))",
        ),
        "private/test_table",
    ),
    _break(
        "a threshold for fewer rows than a unit has is accepted",
        _COSTS,
        "check_sensitivity",
        Force("A.max_rows < B.max_rows", False),
        "accounting/test_budget",
        "accounting/test_certificate",
        "accounting/test_ledger",
    ),
    _break(
        "a run is opened with a budget that exceeds its guarantee",
        _RUN,
        "Run.open",
        Drop("check_budget(A)"),
        "accounting/test_budget",
        "accounting/test_certificate",
        "accounting/test_ledger",
    ),
    _break(
        "σ is rounded down",
        _CONVERSION,
        "sigma_for",
        Replace(
            """
            while Fraction(S) ** 2 < T:
                ...
            while Fraction(E) ** 2 >= T:
                ...
            """,
            """
            while Fraction(S) ** 2 > T:
                S = math.nextafter(S, 0)
            """,
        ),
        "accounting/test_costs",
    ),
    _break(
        "the scale of Laplace noise is rounded down",
        _COSTS,
        "Laplace.for_epsilon",
        Replace("F(..., scale=X)", "math.nextafter(X, 0)"),
        "accounting/test_costs",
    ),
    _break(
        "costs are rounded down",
        _EXACT_NUMBERS,
        "round_up",
        Replace("-(-A * B // C)", "A * B // C"),
        "accounting/test_exact_numbers",
        "accounting/test_costs",
    ),
    _break(
        "Gaussian noise may use a coarse lattice",
        _COSTS,
        "Gaussian.__post_init__",
        Replace("A or B.sigma * C < D", "A"),
        "accounting/test_costs",
    ),
)

_THRESHOLDS = (
    _break(
        "the threshold is lower by k",
        _COSTS,
        "PartitionSelection._is_high_enough",
        Replace("A.log_tail(B - C)", "A.log_tail(B)"),
        "accounting/test_costs",
    ),
    _break(
        "the threshold is that of one key, not of k",
        _COSTS,
        "PartitionSelection._is_high_enough",
        Replace("math.log(A) + B", "B"),
        "accounting/test_costs",
    ),
    _break(
        "values are discovered with the threshold for one row",
        _TABLE,
        "PrivateTable.discover_values",
        Drop("PartitionSelection.for_delta(A, B, X)"),
        "private/test_sensitivity",
    ),
    _break(
        "noisy counts meet the threshold in other steps",
        _MECHANISMS,
        "SystemNoise.select_partitions",
        Replace("A >= B.threshold * C", "A >= B.threshold"),
        "private/test_noise",
    ),
    _break(
        "values below the threshold are listed",
        _MECHANISMS,
        "SystemNoise.select_partitions",
        Replace("A >= B.threshold * C", "A > 0"),
        "private/test_noise",
    ),
    _break(
        "all values that occur are discovered",
        _TABLE,
        "PrivateTable.discover_values",
        Replace(
            "(V,) = F(D, N, L)\nW = sorted((X := V.answer)) if V else B",
            "self._engine.count_texts(N)",
        ),
        "private/test_table",
    ),
)

_LEDGERS = (
    _break(
        "a certificate is compared with the ledger by the entry that it names alone",
        _LEDGER,
        "Ledger.verify",
        Replace("find_disagreements(A, B, C)", "[]"),
        "accounting/test_reconcile",
    ),
    _break(
        "a release that kept no ledger is passed over in silence",
        _LEDGER,
        "Ledger.verify",
        Drop("A.append(B)"),
        "accounting/test_reconcile",
    ),
    _break(
        "numbers of a synopsis that no certificate records are not reported",
        _LEDGER,
        "Ledger.verify",
        Replace("list(A.faults)", "[]"),
        "synopsis/test_ledger_checkpoint",
    ),
    _break(
        "a certificate may state other public facts than the ledger",
        _RECONCILE,
        _MODULE_LEVEL,
        Drop('COMPARED_KEYS = (..., (X := "declared_public"), ...)'),
        "accounting/test_reconcile",
    ),
    _break(
        "a certificate may hide what a run lost",
        _RECONCILE,
        "find_disagreements",
        Replace("COMPARED_KEYS + A", "COMPARED_KEYS"),
        "accounting/test_reconcile",
    ),
    _break(
        "a certificate may have entries that the ledger does not know",
        _RECONCILE,
        "find_disagreements",
        Replace("find_unknown_keys(A, B)", "()"),
        "accounting/test_reconcile",
    ),
    _break(
        "a certificate is read with entries that DPSyn does not write",
        "accounting/certificate.py",
        "Certificate.from_data",
        Force("A is not None", False),
        "accounting/test_certificate",
    ),
    _break(
        "released numbers may be read by another schema or recoding",
        "inference/measurements.py",
        "Release.require_recorded",
        Force("A and A != B", False),
        "synopsis/test_ledger_checkpoint",
    ),
    _break(
        "a certificate may state other measurements than the ledger",
        _RECONCILE,
        _MODULE_LEVEL,
        Drop('COMPARED_KEYS = (..., (X := "measurements"), ...)'),
        "accounting/test_reconcile",
    ),
    _break(
        "an open run holds nothing",
        _LEDGER,
        "_open_run_account",
        Replace("F(..., rho=X)", "Fraction(0)"),
        "accounting/test_ledger",
    ),
    _break(
        "closing returns the whole budget",
        _LEDGER,
        "Ledger.close",
        Replace("R, D = F(X)", "()"),
        "accounting/test_ledger",
    ),
    _break(
        "closing returns the unspent budget twice",
        _LEDGER,
        "_apply_entry",
        Replace("replace(R, ..., rho=X)", "2 * X - R.rho"),
        "accounting/test_ledger",
    ),
    _break(
        "a closed run continues",
        _LEDGER,
        "Ledger._require_open_run",
        Force('"close" in A', False),
        "accounting/test_ledger",
    ),
    _break(
        "the cap is not checked",
        _LEDGER,
        "_check_cap",
        Force("A and B.rho + C.reserved_rho > A.rho", False),
        "accounting/test_ledger",
    ),
    _break(
        "a run is reserved without a look at the cap",
        _LEDGER,
        "_check_reservation",
        Drop("_check_cap(A, B)"),
        "accounting/test_ledger",
    ),
    _break(
        "the ε of pure releases is not checked against the cap",
        _LEDGER,
        "DatasetAccount.fits_as_pure",
        Replace("A <= B", "True"),
        "accounting/test_ledger",
    ),
    _break(
        "a release with Gaussian noise is added up like a pure one",
        _LEDGER,
        "DatasetAccount.fits_as_pure",
        Replace("A.is_pure", "True"),
        "accounting/test_ledger",
    ),
    _break(
        "pure releases are added up without the others",
        _LEDGER,
        "DatasetAccount.pure_epsilon",
        Force("not all(A)", False),
        "accounting/test_ledger",
    ),
    _break(
        "the cap's δ is not checked",
        _LEDGER,
        "_check_cap",
        Force("A and B.delta + C.threshold_delta > A.threshold_delta", False),
        "accounting/test_ledger",
    ),
    _break(
        "different units are added up",
        _LEDGER,
        "_check_reservation",
        Force("A and F(A) != F(B)", False),
        "accounting/test_ledger",
    ),
    _break(
        "the hashes of entries are not checked",
        _HASH_CHAIN,
        "find_faults",
        Force("A.hash != F(B)", False),
        "accounting/test_ledger",
    ),
    _break(
        "the chain of hashes is not checked",
        _HASH_CHAIN,
        "find_faults",
        Force("A.previous != B", False),
        "accounting/test_ledger",
    ),
    _break(
        "heads recorded elsewhere are not compared",
        _HASH_CHAIN,
        "find_faults",
        Force("A.get(B.sequence) != B.hash", False),
        "accounting/test_ledger",
    ),
    _break(
        "a release begins a ledger at a mistyped path",
        _HASH_CHAIN,
        "_require_file",
        Replace("if P.is_file():\n    return", "if not P.exists(): create_chain(P)\nreturn"),
        "accounting/test_ledger",
    ),
    _break(
        "a ledger is begun where one exists",
        _HASH_CHAIN,
        "create_chain",
        Force("os.path.lexists(P)", False),
        "accounting/test_ledger",
    ),
    _break(
        "an empty ledger is intact",
        _HASH_CHAIN,
        "find_faults",
        Force("not A and not B", False),
        "accounting/test_ledger",
    ),
    _break(
        "the ledger is locked by SQLite alone",
        _HASH_CHAIN,
        "open_transaction",
        Replace("exclusive_edit(P, wait=W)", "contextlib.suppress()"),
        "accounting/test_ledger",
    ),
    _break(
        "entries are not read back",
        _HASH_CHAIN,
        "open_transaction",
        Drop("_read_back(...)"),
        "accounting/test_ledger",
    ),
    _break(
        "a lock is removed although its process is running",
        _ATOMIC_FILES,
        "_LockOwner.is_gone",
        Replace("os.kill(A, 0)", "os.kill(2**22 + A, 0)"),
        "test_atomic_files",
    ),
    _break(
        "the lock of another computer is removed",
        _ATOMIC_FILES,
        "_LockOwner.is_gone",
        Force('os.name != "posix" or A != B', False),
        "test_atomic_files",
    ),
    _break(
        "two processes that wait for a lock both remove it",
        _ATOMIC_FILES,
        "_remove_lock_of",
        Drop("os.close(os.open(C, ...))"),
        "test_atomic_files",
    ),
    _break(
        "the lock that a faster process has taken is removed",
        _ATOMIC_FILES,
        "_remove_lock_of",
        Force("A == B", True),
        "test_atomic_files",
    ),
    _break(
        "charges go to a ledger whose end was cut off",
        _LEDGER,
        "Ledger._open_transaction",
        Force("A and B.hash_of(A.sequence) != A.hash", False),
        "accounting/test_ledger",
    ),
    _break(
        "a ledger whose end was cut off is read",
        _LEDGER,
        "Ledger.datasets",
        Force("A and F(B, A)", False),
        "accounting/test_ledger",
    ),
    _break(
        "a ledger whose end was cut off is verified",
        _LEDGER,
        "_find_lost_end",
        Force("A is None or A in B", True),
        "accounting/test_ledger",
    ),
    _break(
        "the last entry is not remembered",
        _LEDGER,
        "Ledger._open_transaction",
        Drop("store_head(...)"),
        "accounting/test_ledger",
    ),
    _break(
        "what is remembered leads the ledger",
        _LEDGER,
        "Ledger._open_transaction",
        Replace("H = T.head()", "H = T.head()\nstore_head(ledger_id, H, self.path)"),
        "accounting/test_ledger",
    ),
    _break(
        "an older entry is remembered instead of a later one",
        _HEAD_STORE,
        "store_head",
        Replace("A.sequence >= B.sequence", "False"),
        "accounting/test_ledger",
    ),
    _break(
        "a forged entry takes back what was spent",
        _LEDGER,
        "_read_cost",
        Force("not 0 <= A <= B or not 0 <= C <= 1", False),
        "accounting/test_ledger_fuzz",
        "accounting/test_ledger",
    ),
    _break(
        "a release that is in a ledger is extended without it",
        _MEASURE,
        "_require_same_ledger",
        Replace("if L is None:\n    raise E", "if L is None:\n    return"),
        "recipes/test_measure",
    ),
    _break(
        "an earlier release of the same dataset is taken for public data",
        _PUBLIC_TABLE,
        "open_public",
        Drop("_refuse_own_release(...)"),
        "recipes/test_public_prior",
    ),
    _break(
        "a renamed release that the ledger knows is taken for public data",
        _PUBLIC_TABLE,
        "_refuse_own_release",
        Replace("C.run in N or O & A", "C.run in N"),
        "recipes/test_public_prior",
    ),
    _break(
        "the private table is its own prior",
        _MEASURE,
        "measure",
        Drop("refuse_private_table(...)"),
        "public/test_public_command",
    ),
    _break(
        "a resumed run may have another public table",
        _MEASURE,
        "_identify_run",
        Replace("{'public': P.to_data()} if P else {}", "{}"),
        "recipes/test_public_prior",
    ),
    _break(
        "a release that is in one ledger is extended in another",
        _MEASURE,
        "_require_same_ledger",
        Replace("[R for R in S if R not in K]", "[]"),
        "recipes/test_measure",
    ),
    _break(
        "entries are not committed",
        _HASH_CHAIN,
        "open_transaction",
        Replace('A.execute("COMMIT")', 'A.execute("ROLLBACK")'),
        "accounting/test_ledger",
    ),
)

_JOURNALS = (
    _break(
        "answers are used without being stored or charged",
        _GATE,
        "_measure",
        Drop("A.commit(B)"),
        "private/test_journal",
    ),
    _break(
        "answers are stored readably before they are charged",
        _JOURNAL,
        "Journal._answer_record",
        Replace("C if K is None else _encrypt(C, K)", "C"),
        "private/test_journal",
    ),
    _break(
        "the hash of an answer is stored before it is charged",
        _JOURNAL,
        "Journal._answer_record",
        Replace('replace(A.charged, answer_hash="").to_data()', "A.charged.to_data()"),
        "private/test_journal",
    ),
    _break(
        "an answer is sealed after it was charged",
        _GATE,
        "Session.commit",
        Replace(
            "K = self.journal.store_sealed(A, H)\nself.run.charge_all(C, K)",
            "self.run.charge_all(C, [''] * len(C))\nself.journal.store_sealed(A, H)",
        ),
        "private/test_journal",
    ),
    _break(
        "the budget is not checked before rows are counted",
        _GATE,
        "Session.plan",
        Drop("self.run.check_charge(X)"),
        "private/test_table",
    ),
    _break(
        "numbers that the certificate does not record are loaded",
        "inference/measurements.py",
        "Release.require_recorded",
        Force("self.certificate is None", True),
        "synopsis/test_serialization",
    ),
    _break(
        "two numbers may belong to one measurement",
        "inference/measurements.py",
        "_take_record",
        Drop("del A[B]"),
        "synopsis/test_serialization",
    ),
    _break(
        "an older copy of the ledger is accepted when a run is resumed",
        _SESSION,
        "_run_from_ledger",
        Drop("A.require_heads(B)"),
        "private/test_journal",
    ),
    _break(
        "answers are used before they are on disk",
        _APPEND_LOG,
        "AppendLog.append",
        Drop("F.flush()\nos.fsync(F.fileno())"),
        "private/test_crash_safety",
    ),
    _break(
        "measurements are not reduced after a loss",
        _SESSION,
        "_open_session",
        Drop("A.reduction = B"),
        "private/test_journal",
    ),
    _break(
        "lost answers are forgotten when a run is resumed",
        _JOURNAL,
        "Journal.unseal",
        Drop("self.lost_measurements = A"),
        "private/test_journal",
    ),
    _break(
        "a stored answer is returned for any question",
        _JOURNAL,
        "Journal._take_answer",
        Replace("(A.planned, A.question) != (B, C)", "False"),
        "private/test_journal",
    ),
    _break(
        "a stored answer is returned for any question of the same name",
        _JOURNAL,
        "Journal._take_answer",
        Replace("(A.planned, A.question) != (B, C)", "A.planned != B"),
        "private/test_journal",
    ),
    _break(
        "answers are measured again although later ones are stored",
        _JOURNAL,
        "Journal.require_no_more_answers",
        Force("A", False),
        "private/test_journal",
    ),
    _break(
        "after a loss answers are measured again although later ones are stored",
        _GATE,
        "PrivacyGate._release",
        Drop("A.require_no_more_answers(B, C)"),
        "private/test_journal",
    ),
    _break(
        "a lost pure step is made again in the place of another one",
        _BUDGET,
        "Account.require_own_step",
        Force("A > 1 and B", False),
        "private/test_journal",
    ),
    _break(
        "a measurement that nothing is left for is made all the same",
        _GATE,
        "Session._plan_after_loss",
        Replace("A.append(None)", "A.append(measurement)"),
        "private/test_journal",
    ),
    _break(
        "the certificate does not state what was left out after a loss",
        _GATE,
        "PrivacyGate._release",
        Drop("A.left_out += B"),
        "recipes/test_lost_answers",
    ),
    _break(
        "without a ledger charges are not recorded",
        _GATE,
        "Session.commit",
        Drop("self.journal.store_answers(A)"),
        "private/test_crash_safety",
    ),
    _break(
        "a run is resumed with another budget",
        _JOURNAL,
        "_require_same_run",
        Force("A", False),
        "private/test_journal",
    ),
    _break(
        "the mark of injected noise is lost when a run is resumed from its journal",
        _SESSION,
        "_resume_run",
        Drop("A.uses_real_noise &= B"),
        "private/test_journal",
    ),
    _break(
        "an interrupted run returns the budget that it may still spend",
        _GATE,
        "Session.suspend",
        Force("A and (B.account.measurements or C)", False),
        "private/test_journal",
    ),
    _break(
        "a complete run measures more without a ledger",
        _SESSION,
        "_run_from_journal",
        Replace("F(..., closed=X)", "False"),
        "private/test_journal",
    ),
    _break(
        "a new run overwrites the journal of an interrupted one",
        _SESSION,
        "_start_run",
        Replace("refuse_existing_journal(P)", "P.unlink(missing_ok=True)"),
        "private/test_journal",
    ),
    _break(
        "an incomplete last line is not cut off",
        _APPEND_LOG,
        "AppendLog.reopen",
        Drop("F.truncate(W)\nF.seek(W)"),
        "private/test_append_log",
    ),
    _break(
        "damaged lines are accepted",
        _APPEND_LOG,
        "_parse_lines",
        Force("A != B", False),
        "private/test_append_log",
    ),
    _break(
        "two processes use one journal",
        _ATOMIC_FILES,
        "lock_while_open",
        Drop("fcntl.flock(...)"),
        "private/test_append_log",
    ),
    _break(
        "a journal is written to after it failed",
        _APPEND_LOG,
        "AppendLog.append",
        Drop("self.release()"),
        "private/test_append_log",
    ),
)

_CONTRIBUTIONS = (
    _break(
        "all rows of a unit are counted in memory",
        _BOUNDED_ROWS,
        "BoundedRows.read_codes",
        Force("A.privacy_unit is None", True),
        "engines/test_contribution_bounding",
    ),
    _break(
        "all rows of a unit are counted in a stream",
        _BOUNDED_ROWS,
        "BoundedRows.read_batches",
        Force("A.privacy_unit is None", True),
        "engines/test_contribution_bounding",
    ),
    _break(
        "a release ignores the privacy unit",
        _SESSION,
        "privacy_unit_of",
        Replace("A = (X := B.privacy_unit)", "None"),
        "private/test_sensitivity",
    ),
    _break(
        "one row too many is counted in memory",
        _BOUNDING,
        "bound_contributions",
        Replace("A < B", "A <= B"),
        "engines/test_contribution_bounding",
    ),
    _break(
        "one row too many is counted in a stream",
        _BOUNDING,
        "SmallestKeys._keep_smallest",
        Replace("A < B", "A <= B"),
        "engines/test_contribution_bounding",
    ),
    _break(
        "the first rows of a unit are counted",
        _BOUNDING,
        "RowHasher.compute_keys",
        Replace("kernels.hash_rows(F(C.T), ..., K)", "K = np.arange(len(C))"),
        "engines/test_contribution_bounding",
    ),
    _break(
        "the key that chooses rows is always the same",
        _SESSION,
        "open_private",
        Replace("F(..., key=X)", "bytes(16)"),
        "private/test_table",
    ),
    _break(
        "other rows are counted after values are discovered",
        _BOUNDED_ROWS,
        "BoundedRows.with_schema",
        Drop("BoundedRows(A, B, C, X)"),
        "engines/test_contribution_bounding",
    ),
    _break(
        "blank ids are separate units",
        _UNIT_IDS,
        "normalize_ids",
        Replace(
            "B = pc.ascii_trim_whitespace(T)\n...\nreturn pc.if_else(E, X, B).cast(...)",
            "T",
        ),
        "engines/test_contribution_bounding",
    ),
    _break(
        "ids that a library turned into floats are other units",
        _UNIT_IDS,
        "normalize_ids",
        Force("pc.any(...).as_py()", False),
        "engines/test_contribution_bounding",
    ),
    _break(
        "ids without a text are the same unit",
        _UNIT_IDS,
        "normalize_ids",
        Replace("E = pc.or_kleene(E, X)", "pc.is_in(E, pa.array([], pa.bool_()))"),
        "engines/test_contribution_bounding",
    ),
    _break(
        "long ids that a reader cut are the same unit",
        _UNIT_IDS,
        "normalize_ids",
        Replace("E = pc.or_(E, X)", "pc.is_in(E, pa.array([], pa.bool_()))"),
        "engines/test_contribution_bounding",
    ),
)

_VALUES = (
    _break(
        "a line with more or fewer cells makes a release fail",
        _CSV,
        "CsvSource._read",
        Replace("parse(A._normalize_all(R))", "parse(R)"),
        "sources/test_csv",
    ),
    _break(
        "cells of a CSV file are not cut",
        _CSV,
        "CsvSource._normalize",
        Replace("MAX_CELL_BYTES", "1 << 40"),
        "sources/test_csv",
    ),
    _break(
        "a quote that is not closed swallows other rows",
        _CSV_KERNELS,
        "normalize_records",
        Force("C == _MALFORMED or (C == _NOT_FOUND and F)", False),
        "sources/test_csv",
    ),
    _break(
        "a line break ends a long cell in quotes",
        _CSV_KERNELS,
        "normalize_records",
        Force("C == _MALFORMED or (C == _NOT_FOUND and F)", True),
        "sources/test_csv",
    ),
    _break(
        "a damaged character of a declared encoding may take in a line break",
        _FILE_SYNTAX,
        "require_encoding",
        Force("K in UNICODE or (len(D) == len(_PROBE) and D.startswith(_PROBE_TEXT))", True),
        "sources/test_file_syntax",
    ),
    _break(
        "ids with bytes that an encoding lacks become equal",
        _CSV,
        "_Transcoder.__init__",
        Replace("'surrogatepass' if E.startswith('utf-16') else 'surrogateescape'", "'replace'"),
        "sources/test_file_syntax",
    ),
    _break(
        "a number in other signs than the declared ones passes for another number",
        _CELL_SYNTAX,
        "_NumberRespelling._respell_other",
        Replace("R if T else UNREADABLE_TEXT", "R"),
        "sources/test_file_syntax",
    ),
    _break(
        "a text in another encoding makes the reading of an SPSS file fail",
        _STATISTICAL,
        "StatisticalFileSource._read",
        Replace("'LATIN1'", "None"),
        "sources/test_office_formats",
    ),
    _break(
        "files with different types are read in the type of the first",
        _FILES,
        "unify_types",
        Replace("A if A.type == K else F(A)", "A.cast(K)"),
        "private/test_nasty_cells",
    ),
    _break(
        "objects of a frame are converted together",
        _PANDAS,
        "_arrow_array",
        Force("not _is_arrow_like(K)", False),
        "private/test_nasty_cells",
    ),
    _break(
        "a type of polars that Arrow does not have makes a release fail",
        _ARROW,
        "_open_stream",
        Replace("D.with_columns(X)", "[]"),
        "private/test_nasty_cells",
    ),
    _break(
        "a date where numbers are declared makes a release fail",
        _COLUMN_CODECS,
        "NumberCodec._read_numbers",
        Force("not arrays.is_number(A)", False),
        "private/test_nasty_cells",
    ),
    _break(
        "numbers where dates are declared are taken for instants",
        _COLUMN_CODECS,
        "DateCodec.read_coordinates",
        Force("not arrays.is_instant(A)", False),
        "private/test_nasty_cells",
    ),
)

_LEAKS = (
    _break(
        "the types that readers choose by values are published",
        _COLUMN_TYPES,
        "_record_type",
        Replace("A in B or C", "False"),
        "test_types",
    ),
    _break(
        "integers come back as floats if a sampled row is missing",
        "encoding/dataframes.py",
        "_to_series",
        Force("A and B.has_missing", False),
        "test_types",
    ),
    _break(
        "the repr of a draft shows its values",
        _SCHEMA_DRAFT,
        "SchemaDraft.__repr__",
        Replace("return X", "self._text"),
        "schema/test_schema_draft",
    ),
    _break(
        "an error quotes a draft that is not valid",
        _SCHEMA_DRAFT,
        "SchemaDraft._without_values",
        Force("not A.unapproved or B", True),
        "schema/test_schema_draft",
    ),
    _break(
        "an error quotes the text of a draft that was given for a path",
        "schema/files.py",
        "require_file",
        Force("re.search(...)", False),
        "schema/test_schema_draft",
    ),
    _break(
        "HTML for notebooks is not escaped",
        "notebook.py",
        "_html_cell",
        Replace("escape(A)", "A"),
        "test_notebook",
    ),
    _break(
        "the number of rows is in the repr of a table",
        _TABLE,
        "PrivateTable.__repr__",
        Replace("return X", 'f"PrivateTable({self._engine.count([()], self.recoding)[0]} rows)"'),
        "private/test_table",
    ),
    _break(
        "an engine shows what it holds",
        _ENGINE,
        "Opaque.__repr__",
        Replace("return X", 'f"<{type(self).__name__}: {vars(self)}>"'),
        "engines/test_contract",
    ),
    _break(
        "an error quotes the message of the reader",
        _SOURCE,
        "attempt",
        Replace("R = F(E)", 'R = f": {E}"'),
        "private/test_table",
    ),
    _break(
        "an error quotes any argument, such as a private table",
        _ERRORS,
        "_quote",
        Replace("A = type(B).__name__", "A = repr(B)"),
        "test_argument_privacy",
    ),
    _break(
        "an error quotes a list of any length, such as a column",
        _ERRORS,
        "_quote",
        Replace("len(A) <= B", "True"),
        "test_argument_privacy",
    ),
    _break(
        "an error quotes the values of a dictionary, such as a row",
        _ERRORS,
        "_quote",
        Replace("if isinstance(V, dict):\n    C = X\n    ...", "[repr(V)]"),
        "test_argument_privacy",
    ),
    _break(
        "the number of rows decides on the engine",
        _FACTORY,
        "choose_engine_kind",
        Replace(
            "(S.byte_size or 0) > M and S.rereadable",
            "S.rereadable and sum(arrow.num_rows for arrow in S.batches(S.schema.names)) > M",
        ),
        "engines/test_factory",
    ),
    _break(
        "texts are read together, and one by one only if that fails",
        _COLUMN_CODECS,
        "RangedCodec._parse_texts",
        Replace(
            "P = (X := F(T, R))\nV = G(P, T, K)",
            "pa.array(np.ones(len(T), np.bool_))",
        ),
        "encoding/test_column_codecs",
    ),
    _break(
        "spellings of missing are compared all at once",
        _COLUMN_CODECS,
        "NumberCodec._spells_null",
        Replace(
            """
            F = super().S(V)
            for N in L:
                ...
            return F
            """,
            "return np.isin(V, list(L))",
        ),
        "encoding/test_column_codecs",
    ),
)

_AUDITS = (
    _break(
        "a rehearsal takes whatever it is given for the kind of a table",
        _REHEARSAL,
        "Rehearsal.__init__",
        Force("type(A) is not str or A not in B", False),
        "audits/test_audit",
    ),
    _break(
        "what is rehearsed is certified as private",
        _REHEARSAL,
        "Rehearsal._run",
        Replace("Run(..., uses_real_noise=X)", "True"),
        "audits/test_audit",
    ),
    _break(
        "a program may ask other questions on a neighbor",
        _REHEARSAL,
        "_ReplayedNoise._repeat",
        Force("A != list(B) or C != D", False),
        "audits/test_audit",
    ),
)

_BASKET_MUTATIONS = (
    _break(
        "baskets: the scale of selections is halved",
        _MECHANISMS,
        "SystemNoise.choose_candidates",
        Replace("A.scale", "A.scale / 2"),
        "private/test_exponential_mechanism",
    ),
    _break(
        "baskets: selections come from a seed",
        _EXPONENTIAL,
        "system_random_words",
        Replace(
            "np.frombuffer(secrets.token_bytes(8 * N), T)",
            "np.random.default_rng(0).integers(0, 2**64, N, T)",
        ),
        "private/test_exponential_mechanism",
    ),
    _break(
        "baskets: floating point decides what is too close to call",
        _EXPONENTIAL,
        "_certain_order",
        Replace("A if B else None", "A"),
        "private/test_exponential_mechanism",
    ),
    _break(
        "baskets: items are charged for one basket of a unit",
        _BASKETS,
        "PrivateBaskets._selection_cost",
        Replace("Exponential.for_epsilon(A, X, ...)", "1"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: every selection may cost what all may cost together",
        _COSTS,
        "Exponential.for_epsilon",
        Replace("A / min(...)", "A"),
        "accounting/test_costs",
    ),
    _break(
        "baskets: supports count as monotone where units are replaced",
        _BASKETS,
        "PrivateBaskets._selection_cost",
        Replace('A.neighbors == "add-remove"', "True"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: a run takes replaced units for monotone",
        _COSTS,
        "check_sensitivity",
        Force("A and B.monotone and C", False),
        "accounting/test_budget",
    ),
    _break(
        "baskets: ranks are charged for one added or removed basket",
        _BASKETS,
        "PrivateBaskets._choose_rank",
        Replace("A.score_sensitivity(1)", "A.max_rows"),
        "private/test_baskets",
    ),
    _break(
        "baskets: ranks are charged as monotone",
        _BASKETS,
        "PrivateBaskets._choose_rank",
        Replace("Exponential.for_epsilon(A, B)", "Exponential.for_epsilon(A, B, monotone=True)"),
        "private/test_baskets",
    ),
    _break(
        "baskets: scores of ranks change by two",
        _BASKETS,
        "PrivateBaskets._choose_rank",
        Replace("return -A", "return -2 * A"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: the support of a rank is charged for one basket",
        _BASKETS,
        "PrivateBaskets.measure_support",
        Replace("Laplace.for_epsilon(A, X)", "1"),
        "private/test_basket_sensitivity",
        "accounting/test_budget",
    ),
    _break(
        "baskets: lengths are charged for one basket",
        _BASKETS,
        "PrivateBaskets.measure_lengths",
        Replace("Laplace.for_epsilon(A, X)", "1"),
        "private/test_basket_sensitivity",
        "accounting/test_budget",
    ),
    _break(
        "baskets: all items of a basket are charged as one",
        _BASKETS,
        "PrivateBaskets.measure_items",
        Replace("A.l1_sensitivity * B", "A.l1_sensitivity"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: all pairs of a basket are charged as one",
        _BASKETS,
        "PrivateBaskets.measure_pairs",
        Replace("A.l1_sensitivity * B", "A.l1_sensitivity"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: more items of a basket count than are charged",
        _BOUNDED_BASKETS,
        "BoundedBaskets.limit_positions",
        Replace("A < B", "A <= B"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: bases are charged for one basket",
        _BASKETS,
        "PrivateBaskets.measure_bases",
        Replace("Laplace.for_epsilon(A, X)", "1"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: discovered items are charged as one",
        _BASKETS,
        "PrivateBaskets.discover_items",
        Replace("A.l2_sensitivity_squared * B", "A.l2_sensitivity_squared"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: the threshold of discovered items is that of one item",
        _BASKETS,
        "PrivateBaskets.discover_items",
        Replace("A.max_rows * B", "A.max_rows"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: all items of a basket are counted",
        _BASKET_ENGINE,
        "BasketEngine.count_items",
        Replace("A.limit_items(...)", "A.items"),
        "engines/test_baskets",
    ),
    _break(
        "baskets: the first items of a basket are counted",
        _BOUNDED_BASKETS,
        "BoundedBaskets.limit_positions",
        Replace("np.lexsort((A, B))", "np.arange(len(B))"),
        "engines/test_baskets",
    ),
    _break(
        "baskets: which items are counted depends on the line",
        _BOUNDED_BASKETS,
        "BoundedBaskets.read",
        Replace("H if has_basket_ids(S) else None", "H"),
        "engines/test_baskets",
    ),
    _break(
        "baskets: all items that occur are discovered",
        _BASKETS,
        "PrivateBaskets.discover_items",
        Replace(
            "F = G(D, L, H)\nI = tuple(sorted((X := F.answer), ...))",
            "self._engine.count_items(L)",
        ),
        "private/test_baskets",
    ),
    _break(
        "baskets: choices are not charged",
        _BASKETS,
        "PrivateBaskets._choose",
        Replace("F = self._release_one(D, Q, E)\nC: T = F.answer", "C = E()"),
        "private/test_baskets",
    ),
    _break(
        "baskets: bases are not charged",
        _BASKETS,
        "PrivateBaskets.measure_bases",
        Replace(
            "self._release(M, Q, lambda: E, ...)",
            "[*map(Released, self._session.mechanisms.add_noise([*zip(E, costs, strict=True)]), costs)]",
        ),
        "private/test_baskets",
    ),
    _break(
        "baskets: discovered items are not charged",
        _BASKETS,
        "PrivateBaskets.discover_items",
        Replace(
            "self._release_one(D, Q, lambda: E)",
            "Released(tuple(self._session.mechanisms.select_partitions(E, cost)), cost)",
        ),
        "private/test_baskets",
    ),
    _break(
        "baskets: they are read before the budget is reserved",
        _SESSION,
        "open_baskets",
        Replace(
            "C = BasketEngine(*A)\nR = S",
            "C = BasketEngine(*A)\nC.prepare()\nR = S",
        ),
        "private/test_baskets",
    ),
    _break(
        "baskets: pure steps may cost more than is planned for all of them",
        _BUDGET,
        "_fits_pure_steps",
        Replace("sum(A) <= B", "True"),
        "accounting/test_budget",
    ),
    _break(
        "baskets: the largest of several steps is compared with the one that is planned",
        _BUDGET,
        "_fits_pure_steps",
        Replace("sum(A)", "max(A, default=0)"),
        "accounting/test_budget",
    ),
    _break(
        "baskets: Laplace noise may be charged less than it costs",
        _COSTS,
        "Laplace.__post_init__",
        Force("A is not None and A < B", False),
        "accounting/test_costs",
    ),
    _break(
        "baskets: selections may be charged less than they cost",
        _COSTS,
        "Exponential.__post_init__",
        Force("min(A.pure_epsilons) < B", False),
        "accounting/test_costs",
    ),
    _break(
        "baskets: all of a unit are counted",
        _BOUNDED_BASKETS,
        "_group_into_baskets",
        Replace("K, C = K[:, O], C[O]\n...\nN = bound_contributions(B, X)", "len(C)"),
        "engines/test_baskets",
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: the key that chooses them is always the same",
        _SESSION,
        "open_baskets",
        Replace("BasketEngine(A, B, X)", "bytes(16)"),
        "private/test_baskets",
    ),
    _break(
        "baskets: an item counts as often as a basket holds it",
        _BOUNDED_BASKETS,
        "_group_into_baskets",
        Replace("A & ~B & C", "A & C"),
        "engines/test_baskets",
    ),
    _break(
        "baskets: their number is returned although it is private",
        _BASKETS,
        "PrivateBaskets.public_basket_count",
        Force("not A.row_count_is_public", False),
        "private/test_baskets",
    ),
    _break(
        "baskets: their number is in the repr",
        _BASKETS,
        "PrivateBaskets.__repr__",
        Replace('f"PrivateBaskets({K})"', 'f"PrivateBaskets({K}, {self._engine.count()})"'),
        "private/test_baskets",
    ),
    _break(
        "baskets: a release ignores the privacy unit",
        _SESSION,
        "privacy_unit_of",
        Drop("F(..., max_rows=X)"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: rows and baskets are added up",
        _LEDGER,
        "_unit_identity",
        Replace("return A, B, X", '""'),
        "private/test_baskets",
    ),
)

_QUERIES = (
    _break(
        "queries: what is not listed of a node is ignored",
        _SQL_WHITELIST,
        "take",
        Force("A not in _HARMLESS", False),
        "sources/test_row_wise",
    ),
    _break(
        "queries: any function is accepted",
        _SQL_WHITELIST,
        "Expression.render",
        Replace("A(N) if A else refuse(N)", 'A(N) if A else N.sql("duckdb")'),
        "sources/test_row_wise",
    ),
    _break(
        "queries: what is not a SELECT is read as one",
        _SQL_READER,
        "_Reader._read_select",
        Force('type(A).__name__ != "Select"', False),
        "sources/test_row_wise",
    ),
    _break(
        "queries: a view is taken for a table",
        _DUCKDB,
        "_DatabaseCatalog._find_at",
        Replace("A if X else B", "True"),
        "sources/test_row_wise",
    ),
    _break(
        "queries: a name that two tables have is taken for one of them",
        _DUCKDB,
        "_DatabaseCatalog.find",
        Force("A == 2 and B and C", False),
        "sources/test_row_wise",
    ),
    _break(
        "queries: rows of a foreign table are read as a part of a table",
        _POSTGRESQL,
        "_ServerCatalog._why_not_stored",
        Force("not A", False),
        "sources/test_postgresql",
    ),
    _break(
        "queries: a column that may fail when it is read is read",
        _POSTGRESQL,
        "_ServerCatalog._why_not_stored",
        Replace('A if B else ""', '""'),
        "sources/test_postgresql",
    ),
    _break(
        "queries: a long interval makes the reading fail",
        _POSTGRESQL,
        "PostgresSource.__init__",
        Force("A", False),
        "sources/test_postgresql",
    ),
    _break(
        "warnings of private objects are shown",
        "encoding/entry_parser.py",
        "bytes_of_objects",
        Drop('warnings.simplefilter("ignore")'),
        "sources/test_sources",
    ),
    _break(
        "queries: a materialized view is taken for a table",
        _POSTGRESQL,
        "_ServerCatalog._why_not_stored",
        Replace('A not in (..., "p")', 'A not in ("r", "p", "m")'),
        "sources/test_postgresql",
    ),
    _break(
        "queries: a macro may replace a function",
        _DUCKDB,
        "_DatabaseCatalog.__init__",
        Drop("self._refuse_shadowed_functions()"),
        "sources/test_row_wise",
    ),
    _break(
        "queries: a cast fails on a value",
        _SQL_WHITELIST,
        "Expression._render_cast",
        Replace('f"TRY_CAST({A} AS {B})"', 'f"CAST({A} AS {B})"'),
        "sources/test_row_wise",
    ),
    _break(
        "queries: whole numbers overflow",
        _SQL_WHITELIST,
        "_wide",
        Replace('f"CAST({S} AS HUGEINT)"', "S"),
        "sources/test_row_wise",
    ),
    _break(
        "queries: a division by zero fails",
        _SQL_WHITELIST,
        "Expression._calculate",
        Force('A in ("/", "//", "%")', False),
        "sources/test_row_wise",
    ),
    _break(
        "queries: DuckDB converts the operands of a comparison",
        _SQL_TERMS,
        "common_kind",
        Force("len(A) > 1", False),
        "sources/test_row_wise",
    ),
    _break(
        "queries: a condition may be a text",
        _SQL_WHITELIST,
        "Expression.render_condition",
        Replace('A.to("boolean")', "A.sql"),
        "sources/test_row_wise",
    ),
    _break(
        "queries: a position may be a column",
        _SQL_WHITELIST,
        "_position",
        Force("not A.isdigit() or B", False),
        "sources/test_row_wise",
    ),
    _break(
        "queries: a pattern may end with its escape character",
        _SQL_WHITELIST,
        "Expression._render_like",
        Drop("_check_pattern(A, B)"),
        "sources/test_row_wise",
    ),
    _break(
        "queries: generated columns are read",
        _DUCKDB,
        "_DatabaseCatalog._base_table",
        Force("A in B", False),
        "sources/test_row_wise",
    ),
    _break(
        "queries: ids that are not UTF-8 become equal",
        _DUCKDB,
        "_decode",
        Replace("A.decode()", 'A.decode("utf-8", "replace")'),
        "sources/test_row_wise",
    ),
    _break(
        "queries: the id of a privacy unit may be computed",
        _SOURCE,
        "require_unchanged",
        Force("A in B and A not in C", False),
        "recipes/test_query_releases",
    ),
    _break(
        "queries: a computed column passes for a base column",
        _SQL_READER,
        "_Reader._read_item",
        Replace("OutputColumn(sql=A, uses=U, growth=G, kind=K)", "OutputColumn(sql=A, uses=U, kind=K, origin=A)"),
        "sources/test_row_wise",
    ),
    _break(
        "queries: a condition of a view is forgotten",
        _ROW_WISE,
        "RowWiseQuery.keeps_all_rows",
        Replace("A and X", "True"),
        "sources/test_row_wise",
    ),
    _break(
        "queries: the number of rows that are selected is public",
        _PRIVACY_UNIT,
        "PrivacyUnit.row_count_is_public",
        Replace("A and B and X", "True"),
        "recipes/test_query_releases",
    ),
    _break(
        "queries: a release forgets that rows are left out",
        _SESSION,
        "privacy_unit_of",
        Drop("F(..., filtered=X)"),
        "recipes/test_query_releases",
    ),
    _break(
        "queries: rows of an answer pass for base rows",
        _SESSION,
        "privacy_unit_of",
        Replace("A + (B if X else C)", "False"),
        "recipes/test_query_releases",
    ),
    _break(
        "queries: an estimated number of rows is taken as exact",
        _QUERY_ENGINE,
        "_estimate_view",
        Replace("A if B and X else C", "True"),
        "recipes/test_query_releases",
    ),
    _break(
        "queries: the certificate is silent about the query",
        _SESSION,
        "_run_terms",
        Replace("(B,) if C else ()", "()"),
        "recipes/test_query_releases",
    ),
    _break(
        "queries: a run is resumed with another query",
        _SESSION,
        "_RunTerms.header",
        Drop("F(..., query=X)"),
        "recipes/test_query_releases",
    ),
    _break(
        "queries: a run is resumed with another table",
        _SESSION,
        "_RunTerms.header",
        Drop("F(..., source=X)"),
        "recipes/test_query_releases",
    ),
    _break(
        "queries: a database may read other files",
        _DUCKDB,
        "query_database",
        Drop("A.connect(..., config=X)"),
        "sources/test_row_wise",
    ),
    _break(
        "queries: part of a password is shown",
        _ADDRESSES,
        "redact_address",
        Replace("return A if B else X", "address.rpartition('@')[2]"),
        "sources/test_addresses",
    ),
    _break(
        "queries: a cell passes for a message of a worker",
        _SPARK,
        "_attempt",
        Replace('re.search(rf"{M} ([^\\n]+)", T)', 're.search(r"Error: ([^\\n]+)", T)'),
        "engines/test_spark",
    ),
)

_SIGNATURES = (
    _break(
        "verification: a certificate is read although its noise is for too small a sensitivity",
        _CERTIFICATE,
        "Certificate.from_data",
        Drop("check_sensitivity(...)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: many scores are read with the noise of one",
        _MEASUREMENTS,
        "_require_score_sensitivity",
        Force("not A", False),
        "verification/test_forgeries",
    ),
    _break(
        "verification: a signature by any key counts",
        _VERIFY,
        "_check_signature",
        Drop("_require(A in B, ...)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: signatures are not verified",
        _VERIFY,
        "_check_signature",
        Replace("A.public_key.verifies(B, C)", "True"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: a file that nobody signed counts",
        _VERIFY,
        "_check_statement",
        Replace("A.keys() | B.keys()", "B.keys()"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: a signed file may be missing",
        _VERIFY,
        "_check_statement",
        Replace("A.keys() | B.keys()", "A.keys()"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: the parts of a statement are not compared",
        _VERIFY,
        "_check_statement",
        Drop("_require(A.get(P) == B.get(P), ...)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: a release with the noise of a test is verified",
        _VERIFY,
        "_check_cost",
        Drop("_require(A.uses_real_noise, ...)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: stated bounds of ε are not compared",
        _VERIFY,
        "_check_cost",
        Drop("_require(not A, ...)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: faults of the ledger are passed over",
        _VERIFY,
        "_check_ledger",
        Replace("[*A.faults, *A.not_compared]", "[]"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: rows may have another hash",
        _VERIFY,
        "_check_rows",
        Drop("_require(A == E, ..., E)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: a card may state another ε",
        _VERIFY,
        "_check_cards",
        Replace("math.isclose(...)", "True"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: a choice states less than all of it costs",
        _VERIFY,
        "_check_choice",
        Drop("_require(math.isclose(...), ...)"),
        "verification/test_choices",
    ),
    _break(
        "verification: a choice need not be the answer that was charged",
        _VERIFY,
        "_check_choice",
        Drop("_require(A.answer_hash == B, ...)"),
        "verification/test_choices",
    ),
    _break(
        "verification: a text may state another ε",
        _VERIFY,
        "_check_certificate_files",
        Drop("_require(A == B, ...)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: points of small order are keys",
        _KEYS,
        "PublicKey.__post_init__",
        Force("A >= B or A in C", False),
        "verification/test_keys",
    ),
    _break(
        "verification: everybody can read a private key",
        _KEYS,
        "SigningKey.save",
        Replace("_create_file(A, B, (X := 0o600))", "0o644"),
        "verification/test_keys",
    ),
    _break(
        "verification: the same key twice is one of them",
        _STATEMENT,
        "load_json",
        Force("len(A) < len(B)", False),
        "verification/test_forgeries",
    ),
    _break(
        "verification: links count as files",
        _STATEMENT,
        "list_files",
        Force("not (A or B)", False),
        "verification/test_forgeries",
    ),
    _break(
        "verification: stand-alone: a signature has two forms",
        _STAND_ALONE,
        "ed25519_verifies",
        Replace("A is None or len(B) != 64 or C >= ORDER", "A is None or len(B) != 64"),
        "verification/test_keys",
    ),
    _break(
        "verification: stand-alone: points of small order are keys",
        _STAND_ALONE,
        "is_usable_key",
        Replace("return A is not None and B", "return A is not None"),
        "verification/test_keys",
    ),
    _break(
        "verification: stand-alone: a signature by any key counts",
        _STAND_ALONE,
        "check_signature",
        Drop("require(A in B, ...)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: stand-alone: a file that nobody signed counts",
        _STAND_ALONE,
        "check_statement",
        Replace("set(A) | set(B)", "set(B)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: stand-alone: thresholds are not compared with their δ",
        _STAND_ALONE,
        "partition_cost",
        Drop("require(R * T <= D, ...)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: stand-alone: charged ε is not compared with the noise",
        _STAND_ALONE,
        "mechanism_cost",
        Drop("require(min(A) >= B, ...)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: stand-alone: the budget may exceed the guarantee",
        _STAND_ALONE,
        "check_cost",
        Drop("require(keeps_guarantee(...), ...)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: stand-alone: more than the budget may be spent",
        _STAND_ALONE,
        "check_cost",
        Drop("require(A <= B, ...)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: stand-alone: an ε that is too small counts",
        _STAND_ALONE,
        "check_bounds",
        Replace("total_delta(A, B) <= C", "True"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: stand-alone: a choice states less than all of it costs",
        _STAND_ALONE,
        "check_choice",
        Drop("require(A and B <= C, ...)"),
        "verification/test_choices",
    ),
    _break(
        "verification: stand-alone: a choice among other candidates counts",
        _STAND_ALONE,
        "check_choice",
        Drop("require(A, 'a choice among other candidates', ...)"),
        "verification/test_choices",
    ),
    _break(
        "verification: stand-alone: a choice need not be the answer that was charged",
        _STAND_ALONE,
        "check_choice",
        Drop('require(A["answer_hash"] == B, ...)'),
        "verification/test_choices",
    ),
    _break(
        "verification: stand-alone: numbers that nobody charged count",
        _STAND_ALONE,
        "take_record",
        Replace('A["answer_hash"] == D', "True"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: stand-alone: hashes of arrays are not compared",
        _STAND_ALONE,
        "Release.open_synopsis",
        Drop("require(sha256(A) == B, ...)"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: stand-alone: the chain of a ledger is not checked",
        _STAND_ALONE,
        "read_ledger",
        Drop("require(A, ..., 'an intact chain of hashes')"),
        "verification/test_forgeries",
    ),
    _break(
        "verification: stand-alone: the ledger may have recorded something else",
        _STAND_ALONE,
        "check_ledger",
        Drop("require(A[N] == B, ...)"),
        "verification/test_forgeries",
    ),
)

_WORKBENCH = (
    _break(
        "the workbench answers to foreign names",
        _APP_SECURITY,
        "Guard._refuse",
        Force("A not in self._access.hosts", False),
        "app/test_security",
    ),
    _break(
        "the workbench takes forms from foreign pages",
        _APP_SECURITY,
        "Guard._refuse",
        Force("A == 'POST' and B != C", False),
        "app/test_security",
    ),
    _break(
        "the workbench reads bodies of any announced size",
        _APP_SECURITY,
        "Guard._refuse",
        Force("not A or B > C", False),
        "app/test_security",
    ),
    _break(
        "the workbench reads bodies of any size",
        _APP_SECURITY,
        "_limit_body",
        Force("A > B", False),
        "app/test_security",
    ),
    _break(
        "the workbench opens without its token",
        _APP_SECURITY,
        "Guard._answer_stranger",
        Force("hmac.compare_digest(...)", True),
        "app/test_security",
    ),
    _break(
        "the workbench shows pages to strangers",
        _APP_SECURITY,
        "Access.is_signed_in",
        Replace("return X", "True"),
        "app/test_security",
    ),
    _break(
        "the workbench takes forms without their token",
        _APP_SECURITY,
        "Access.check_form",
        Force("not A", False),
        "app/test_security",
    ),
    _break(
        "the workbench takes any password",
        _APP_SECURITY,
        "Guard._sign_in",
        Force("hmac.compare_digest(...)", True),
        "app/test_security",
    ),
    _break(
        "a script can read the cookie of the workbench",
        _APP_SECURITY,
        "Access.sign_in",
        Replace("A.set_cookie(..., httponly=X)", "False"),
        "app/test_security",
    ),
    _break(
        "names from a browser are paths",
        _APP_WORKSPACE,
        "_find",
        Replace("not A or not B", "not B"),
        "app/test_security",
    ),
    _break(
        "a form that is sent twice is charged twice",
        _APP_WORKSPACE,
        "Workspace.find_started",
        Replace("return A if B else C", "return None"),
        "app/test_security",
    ),
    _break(
        "another release needs no confirmation",
        _APP_BUDGET,
        "_start_release",
        Force("A not in B and C", False),
        "app/test_security",
    ),
    _break(
        "a changed entry keeps the reason of its approval",
        _APP_SCHEMA,
        "_edit",
        Force("A != 'approved'", True),
        "app/test_pages",
    ),
    _break(
        "an approval in the text of a schema outlives its entry",
        "schema/approval.py",
        "withdraw_approvals",
        Replace("[A for A, B in C if D]", "[]"),
        "app/test_pages",
    ),
    _break(
        "earlier releases of another file do not count",
        _APP_BUDGET,
        "_find_earlier",
        Replace("[R for R in A if B] if C else []", "[]"),
        "app/test_pages",
    ),
    _break(
        "two windows release a table at once without a confirmation",
        _APP_BUDGET,
        "start_release",
        Replace("exclusive_edit(...)", "open('/dev/null')"),
        "app/test_security",
    ),
    _break(
        "a job is started twice by two requests at once",
        _APP_JOBS,
        "Job.start",
        Replace("exclusive_edit(...)", "open('/dev/null')"),
        "app/test_jobs",
    ),
    _break(
        "a report is of the same origin as the workbench",
        _APP_RELEASE,
        "_send_report",
        Drop("FileResponse(..., headers=X)"),
        "app/test_pages",
    ),
    _break(
        "an internal error of the workbench quotes rows",
        _APP_LAYOUT,
        "_guarded",
        Replace("type(A).__name__", "str(A)"),
        "app/test_security",
    ),
)

_ASSESSMENTS = (
    _break(
        "distances are charged as if a row changed them by 1",
        _DISTANCES,
        _MODULE_LEVEL,
        Replace("PER_ROW = X", "1"),
        "private/test_distances",
    ),
    _break(
        "distances are charged for one row of a unit",
        _DISTANCES,
        "distance_sensitivity",
        Replace("PER_ROW * A.max_rows", "PER_ROW"),
        "private/test_distances",
    ),
    _break(
        "distances of groups are charged as one distance",
        _DISTANCES,
        "DistanceQuery.sensitivity_squared",
        Force("self.grouped", False),
        "private/test_distances",
    ),
    _break(
        "distances of groups are charged as a marginal",
        _DISTANCES,
        "DistanceQuery.sensitivity_squared",
        Replace("PER_ROW**2 * A", "A"),
        "private/test_distances",
    ),
    _break(
        "distances of many marginals are added up",
        _DISTANCES,
        "DistanceQuery.summarize",
        Replace("sum(A) / len(A)", "sum(A)"),
        "private/test_distances",
    ),
    _break(
        "the number of rows is not adjusted in a distance",
        _DISTANCES,
        "_exact_distance",
        Replace("A * B - R * T", "A * B - R * R * T"),
        "private/test_distances",
    ),
    _break(
        "distances of large tables overflow",
        _DISTANCES,
        "_exact_distance",
        Force("A * B >= C", False),
        "private/test_distances",
    ),
    _break(
        "negative public counts are accepted",
        _DISTANCES,
        "DistanceGate._check_targets",
        Force("any(...)", False),
        "private/test_distances",
    ),
    _break(
        "groups may be by different attributes",
        _DISTANCES,
        "DistanceGate.measure_distances",
        Force("A.grouped and B", False),
        "private/test_distances",
    ),
    _break(
        "the choice of a table is charged as monotone",
        _DISTANCES,
        "DistanceGate.choose_nearest",
        Replace("Exponential.for_epsilon(A, B)", "Exponential.for_epsilon(A, B, monotone=True)"),
        "private/test_distances",
    ),
    _break(
        "the choice of a table is charged for one row",
        _DISTANCES,
        "DistanceGate.choose_nearest",
        Replace("Exponential.for_epsilon(A, X)", "1"),
        "private/test_distances",
    ),
    _break(
        "the scores of a choice are added up over marginals",
        _DISTANCES,
        "DistanceGate.choose_nearest",
        Replace("A / len(B)", "A"),
        "private/test_distances",
    ),
    _break(
        "sums are charged for one row",
        _DISTANCES,
        "DistanceGate.measure_sums",
        Replace("self.privacy_unit.score_sensitivity(A)", "Fraction(A)"),
        "private/test_distances",
    ),
    _break(
        "sums are charged as counts",
        _DISTANCES,
        "DistanceGate.measure_sums",
        Replace("self.privacy_unit.score_sensitivity(X)", "1"),
        "private/test_distances",
    ),
    _break(
        "negative weights are not charged",
        _DISTANCES,
        "DistanceGate.measure_sums",
        Replace("max(1, A, -B)", "max(1, A)"),
        "private/test_distances",
    ),
    _break(
        "weights may be too large for a sum",
        _DISTANCES,
        "DistanceGate.measure_sums",
        Force("max(A) > MAX_WEIGHT", False),
        "private/test_distances",
    ),
    _break(
        "the certificate of an evaluation is silent about the synthetic table",
        _RELEASE_EVALUATION,
        "release_evaluation",
        Drop("open_private(..., declared_public=X)"),
        "assessment/test_release_evaluation",
    ),
    _break(
        "a choice states the guarantee of one candidate",
        _CHOOSE,
        "choose",
        Replace("total = combine_budgets(A)", "total = A[0]"),
        "assessment/test_choose",
    ),
    _break(
        "a choice forgets the noise of other candidates",
        _BUDGET,
        "combine_budgets",
        Replace("sum((A.rho for A in B), C)", "max(A.rho for A in B)"),
        "assessment/test_choose",
    ),
    _break(
        "a choice continues with releases of another recipe",
        _CHOOSE,
        "_require_same_release",
        Force("A is None or not B or C", False),
        "assessment/test_choose",
    ),
    _break(
        "a choice continues with releases of another ε",
        _CHOOSE,
        "_require_same_release",
        Replace("A.epsilon != B.epsilon", "False"),
        "assessment/test_choose",
    ),
    _break(
        "methods of arrays see exact counts",
        _DISTANCES,
        "DistanceGate._check_arrays",
        Force("type(A) is not np.ndarray", False),
        "private/test_distances",
    ),
    _break(
        "methods of queries see exact distances",
        _DISTANCES,
        "DistanceGate.measure_distances",
        Force("any(type(A) is not DistanceQuery for A in B)", False),
        "private/test_distances",
    ),
    _break(
        "a choice continues with releases of another δ",
        _CHOOSE,
        "_require_same_release",
        Replace("A.delta != B.delta", "False"),
        "assessment/test_choose",
    ),
    _break(
        "a choice continues with releases that the ledger does not know",
        _CHOOSE,
        "_require_same_release",
        Replace("not _is_recorded(A, B)", "False"),
        "assessment/test_choose",
    ),
    _break(
        "a choice continues with releases of another query",
        _CHOOSE,
        "_choose_nearest",
        Drop("_require_same_table(...)"),
        "assessment/test_choose",
    ),
    _break(
        "a choice whose journal is gone is made again",
        _CHOOSE,
        "_choose_nearest",
        Drop("_refuse_second_choice(...)"),
        "assessment/test_choose",
    ),
    _break(
        "a second choice among the same candidates is not looked for",
        _VERIFY,
        "_check_choice",
        Drop("_require_one_choice(...)"),
        "verification/test_choices",
    ),
    _break(
        "the stand-alone verifier looks for no second choice",
        _STAND_ALONE,
        "check_choice",
        Drop("check_one_choice(...)"),
        "verification/test_choices",
    ),
    _break(
        "the private table is evaluated as a synthetic one",
        _RELEASE_EVALUATION,
        "release_evaluation",
        Force("is_same_table(A, B)", False),
        "assessment/test_release_evaluation",
    ),
    _break(
        "the stand-alone verifier does not count scores",
        _STAND_ALONE,
        "check_numbers",
        Drop("check_score_sensitivity(...)"),
        "verification/test_forgeries",
    ),
    _break(
        "a key that lies in the release verifies it",
        _VERIFY,
        "verify",
        Drop("_refuse_key_of_release(...)"),
        "verification/test_forgeries",
    ),
    _break(
        "a release is signed with a private key in it",
        _STATEMENT,
        "sign_release",
        Drop("_refuse_private_keys(...)"),
        "verification/test_forgeries",
    ),
)

MUTATIONS: tuple[Mutation, ...] = (
    *_NOISE,
    *_SENSITIVITY,
    *_CHARGES,
    *_ACCOUNTING,
    *_THRESHOLDS,
    *_LEDGERS,
    *_JOURNALS,
    *_CONTRIBUTIONS,
    *_VALUES,
    *_LEAKS,
    *_AUDITS,
    *_BASKET_MUTATIONS,
    *_QUERIES,
    *_SIGNATURES,
    *_WORKBENCH,
    *_ASSESSMENTS,
)
"""All mutations: noise, sensitivity, charges, accounts, thresholds, ledger, journal, contribution bounding, values,
leaks; audits; again for baskets; queries; what verifies releases; the workbench; and assessments of synthetic tables.
"""
