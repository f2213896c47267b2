"""Ways to break the guarantee, each with the tests that should notice.

A mutation changes one place of one function of ``src/dpsyn``, which is found by its syntax (see ``bench.syntax``). It
must leave a program that runs: what the tests are to see is a wrong answer, not a missing name.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.syntax import Change, Drop, Force, Replace

_ACCOUNT = "accounting/budget.py"
_AGREEMENT = "accounting/reconcile.py"
_CERTIFICATE = "accounting/certificate.py"
_CHAIN = "accounting/hash_chain.py"
_CONVERSION = "accounting/conversion.py"
_EXACT = "accounting/exact_numbers.py"
_LEDGER = "accounting/ledger.py"
_PROTECTION = "accounting/privacy_unit.py"
_RUN = "accounting/run.py"
_SPENDS = "accounting/costs.py"
_BOUNDING = "engines/contribution_bounding.py"
_ENGINE = "engines/engine.py"
_ENGINE_OPENING = "engines/factory.py"
_ROWS = "engines/bounded_rows.py"
_TEXTS = "engines/contribution_bounding.py"
_MINING = "engines/baskets/engine.py"
_BASKET_READING = "engines/baskets/bounded_baskets.py"
_BASKETS = "private/baskets.py"
_DOORWAY = "private/gate.py"
_JOURNAL = "private/journal.py"
_LINES = "private/append_log.py"
_MECHANISMS = "private/mechanisms.py"
_OPENING = "private/session.py"
_PEELING = "private/exponential.py"
_GATE = "private/table.py"
_COLUMNS = "encoding/column_codecs.py"
_SOURCE = "sources/source.py"

_MODULE_LEVEL = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One way to break the source.

    Attributes:
        name: what is broken, in words.
        file: where, below ``src/dpsyn``.
        function: the qualified name of the function there; empty for the module level.
        change: what is done to the one place of the function that it fits.
        tests: the files of tests that should notice.
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
        "_split_into_chunks",
        Replace("A.sigma", "A.sigma / 2"),
        "private/test_noise",
    ),
    _break(
        "the scale of Laplace noise is halved",
        _MECHANISMS,
        "_split_into_chunks",
        Replace("A.scale", "A.scale / 2"),
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
        "one draw serves all cells of a chunk",
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
        _GATE,
        "PrivateTable._release_scores",
        Replace("(N,) = F(..., lambda: [np.array(E(), T)])\nreturn X", "np.array(E(), np.float64)"),
        "private/test_noise",
    ),
    _break(
        "noise that a test injected is not stamped",
        _OPENING,
        "_journal_header",
        Replace("F(..., uses_real_noise=X)", "True"),
        "private/test_table",
    ),
    _break(
        "the stamp of injected noise is lost when a run is resumed",
        _RUN,
        "Run.resume",
        Replace("F(..., uses_real_noise=X)", "True"),
        "accounting/test_ledger",
    ),
    _break(
        "the stamp of injected noise is lost when a certificate is read",
        _CERTIFICATE,
        "Certificate.from_data",
        Replace("F(..., uses_real_noise=X)", "True"),
        "accounting/test_certificate",
        "private/test_table",
    ),
    _break(
        "one of two stamps of a certificate is enough",
        _CERTIFICATE,
        "parse_privacy_flag",
        Replace("predict_all(A)", "any(A)"),
        "accounting/test_certificate",
    ),
)

_SENSITIVITY = (
    _break(
        "marginals are charged for one row",
        _GATE,
        "PrivateTable.measure",
        Replace("Gaussian.within(A, X)", "1"),
        "private/test_sensitivity",
    ),
    _break(
        "marginals with Laplace noise are charged for one row",
        _GATE,
        "PrivateTable.measure_laplace",
        Replace("Laplace.within(A, X)", "1"),
        "private/test_sensitivity",
    ),
    _break(
        "fine histograms are charged for one row",
        _GATE,
        "PrivateTable.measure_fine_histogram",
        Replace("Gaussian.within(A, X)", "1"),
        "private/test_sensitivity",
    ),
    _break(
        "ranges are charged for one row",
        _GATE,
        "PrivateTable.discover_range",
        Replace("Gaussian.within(A, X)", "1"),
        "private/test_sensitivity",
    ),
    _break(
        "values are charged for one row",
        _GATE,
        "PrivateTable.discover_values",
        Replace("Gaussian.within(A, X)", "1"),
        "private/test_sensitivity",
    ),
    _break(
        "scores are charged for one row",
        _GATE,
        "PrivateTable._score_cost",
        Replace("A.score_predictions(B)", "B"),
        "private/test_sensitivity",
    ),
    _break(
        "many scores are charged as one",
        _GATE,
        "PrivateTable._score_cost",
        Replace("A * B", "B"),
        "private/test_sensitivity",
    ),
    _break(
        "marginals of several recodings get half of their noise",
        _GATE,
        "PrivateTable.measure_recodings",
        Replace("Gaussian.within(A, X)", "X / 4"),
        "private/test_sensitivity",
    ),
    _break(
        "dependence is charged as 1 a row",
        _GATE,
        "PrivateTable.score_indif",
        Replace("F(..., per_row=X)", "1"),
        "private/test_sensitivity",
    ),
    _break(
        "predictions are not rounded",
        _GATE,
        "PrivateTable._round_prediction",
        Replace("np.asarray(np.rint(A), T)", "np.asarray(A, np.float64)"),
        "private/test_table",
    ),
    _break(
        "k rows of a person are charged as √k",
        _PROTECTION,
        "PrivacyUnit.l2_sensitivity_squared",
        Replace("A**2", "A"),
        "accounting/test_costs",
    ),
    _break(
        "an exchanged unit is charged like one that left",
        _PROTECTION,
        "PrivacyUnit._changed_units",
        Replace("return X", "1"),
        "accounting/test_costs",
    ),
    _break(
        "bounds are read off exact counts",
        _GATE,
        "PrivateTable.discover_range",
        Replace(
            "(R,) = F(..., C)\nreturn G(H(I(J, (X := K(N, R, S)))))",
            "Marginal(N, C()[0], 0, S.sigma)",
        ),
        "private/test_sensitivity",
        "private/test_table",
    ),
)

_PAYING = (
    _break(
        "marginals are not paid for",
        _GATE,
        "PrivateTable._measure_axes",
        Replace(
            "self._release_with_noise(P, S, Q, lambda: E)",
            "self._mechanisms.add_noise([*zip(E, S, strict=True)])",
        ),
        "private/test_table",
    ),
    _break(
        "fine histograms are not paid for",
        _GATE,
        "PrivateTable.measure_fine_histogram",
        Replace("self._release_with_noise([P], [S], Q, lambda: E)", "self._mechanisms.add_noise([(E[0], S)])"),
        "private/test_table",
    ),
    _break(
        "scores are not paid for",
        _GATE,
        "PrivateTable._release_scores",
        Replace("self._release_with_noise([P], [S], Q, lambda: [E])", "self._mechanisms.add_noise([(E, S)])"),
        "private/test_table",
    ),
    _break(
        "values are not paid for",
        _GATE,
        "PrivateTable.discover_values",
        Replace("self._release(D, Q, L)", "L(0)"),
        "private/test_table",
    ),
    _break(
        "ranges are not paid for",
        _GATE,
        "PrivateTable.discover_range",
        Replace("self._release_with_noise([P], [S], Q, C)", "self._mechanisms.add_noise([(C()[0], S)])"),
        "private/test_table",
    ),
    _break(
        "no answer is paid for",
        _DOORWAY,
        "PrivacyGate._release",
        Drop("self._charge(A)"),
        "private/test_table",
    ),
    _break(
        "answers are paid for after counting",
        _DOORWAY,
        "PrivacyGate._release",
        Replace("self._charge(A)\nN: T = C", "C\nself._charge(A)\nN: T = C"),
        "private/test_table",
    ),
    _break(
        "answers are paid for after drawing",
        _DOORWAY,
        "PrivacyGate._release",
        Replace("self._charge(A)\nN: T = C", "N: T = C\nself._charge(A)"),
        "private/test_crash_safety",
    ),
    _break(
        "measurements are written to no ledger",
        _RUN,
        "Run.charge_all",
        Drop("A = B.ledger.charge(...)"),
        "private/test_crash_safety",
    ),
    _break(
        "rows are read before the promise is reserved",
        _OPENING,
        "open_private",
        Replace(
            "N = M or SystemNoise()\n*R\nC = F(lambda: E, *A)",
            "N = M or SystemNoise()\nE.prepare_table()\n*R\nC = F(lambda: E, *A)",
        ),
        "private/test_table",
    ),
    _break(
        "threads that share a run pay at the same time",
        _RUN,
        "Run.charge_all",
        Replace("with A._lock:\n    *B", "if True:\n    *B"),
        "accounting/test_ledger",
    ),
    _break(
        "dependence of three attributes is charged like that of two",
        _GATE,
        "PrivateTable.score_indif",
        Force("any(len(A) != 2 for A in B)", False),
        "private/test_table",
    ),
    _break(
        "a prediction may be so large that sums overflow",
        _GATE,
        _MODULE_LEVEL,
        Replace("MAX_PREDICTION = X", "2**62"),
        "private/test_table",
    ),
    _break(
        "a failing engine speaks for itself",
        _DOORWAY,
        "without_leaking_errors",
        Replace(
            """
            try:
                ...
            except X:
                raise
            except Exception as E:
                ...
            """,
            "Exception",
        ),
        "private/test_table",
    ),
    _break(
        "a drafted schema is released",
        _OPENING,
        "open_private",
        Drop("A.require_public()"),
        "private/test_table",
    ),
)

_ACCOUNTING = (
    _break(
        "Gaussian noise beyond the budget is allowed",
        _ACCOUNT,
        "Account.charge",
        Force("A > B.rho", False),
        "accounting/test_ledger",
    ),
    _break(
        "thresholds beyond the budget are allowed",
        _ACCOUNT,
        "Account.charge",
        Force("A.delta > B.threshold_delta", False),
        "accounting/test_budget",
        "accounting/test_certificate",
        "accounting/test_ledger",
    ),
    _break(
        "pure steps beyond the budget are allowed",
        _ACCOUNT,
        "Account.charge",
        Force("not F(A.pure_epsilons, B.pure_epsilons)", False),
        "accounting/test_budget",
        "accounting/test_certificate",
        "accounting/test_ledger",
    ),
    _break(
        "a run records draws without asking its account",
        _RUN,
        "Run.charge_all",
        Replace(
            "A = A.charge(D)",
            "A = Account(budget=A.budget, measurements=(*A.measurements, D), total=A.total.compose(D.cost))",
        ),
        "private/test_table",
    ),
    _break(
        "a threshold for fewer rows than a person has is paid",
        _RUN,
        "_check_sensitivity",
        Force("A.max_rows < B.max_rows", False),
        "accounting/test_budget",
        "accounting/test_certificate",
        "accounting/test_ledger",
    ),
    _break(
        "a budget that does not keep its promise is opened",
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
        _SPENDS,
        "Laplace.for_epsilon",
        Replace("F(..., scale=X)", "math.nextafter(X, 0)"),
        "accounting/test_costs",
    ),
    _break(
        "costs are rounded down",
        _EXACT,
        "round_up",
        Replace("-(-A * B // C)", "A * B // C"),
        "accounting/test_exact_numbers",
        "accounting/test_costs",
    ),
    _break(
        "Gaussian noise may be drawn on a coarse lattice",
        _SPENDS,
        "Gaussian.__post_init__",
        Replace("A or B.sigma * C < D", "A"),
        "accounting/test_costs",
    ),
)

_THRESHOLDS = (
    _break(
        "the threshold is lower by k",
        _SPENDS,
        "PartitionSelection._is_high_enough",
        Replace("A.log_tail(B - C)", "A.log_tail(B)"),
        "accounting/test_costs",
    ),
    _break(
        "the threshold is that of one key, not of k",
        _SPENDS,
        "PartitionSelection._is_high_enough",
        Replace("math.log(A) + B", "B"),
        "accounting/test_costs",
    ),
    _break(
        "values are bought with the threshold for one row",
        _GATE,
        "PrivateTable.discover_values",
        Drop("PartitionSelection.within(A, B, X)"),
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
        "all values that occur are taken",
        _GATE,
        "PrivateTable.discover_values",
        Replace(
            "(V,) = F(D, N, L)\nreturn G(H(A.bought(sorted((X := V)))))",
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
        Replace("A += X", "[]"),
        "accounting/test_reconcile",
    ),
    _break(
        "a certificate may state other draws than the ledger",
        _AGREEMENT,
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
        "closing gives the whole promise back",
        _LEDGER,
        "Ledger.close",
        Replace("R, D = F(X)", "()"),
        "accounting/test_ledger",
    ),
    _break(
        "closing gives the unspent part back twice",
        _LEDGER,
        "_apply_entry",
        Replace("replace(R, ..., rho=X)", "2 * X - R.rho"),
        "accounting/test_ledger",
    ),
    _break(
        "a closed run goes on",
        _LEDGER,
        "Ledger._require_open_run",
        Force('"tightening_tolerance" in A', False),
        "accounting/test_ledger",
    ),
    _break(
        "the cap is not checked",
        _LEDGER,
        "_check_reservation",
        Force("A and B.rho + C.reserved_rho > A.rho", False),
        "accounting/test_ledger",
    ),
    _break(
        "the cap's δ is not checked",
        _LEDGER,
        "_check_reservation",
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
        _CHAIN,
        "find_faults",
        Force("A.hash != F(B)", False),
        "accounting/test_ledger",
    ),
    _break(
        "the chain of hashes is not checked",
        _CHAIN,
        "find_faults",
        Force("A.previous != B", False),
        "accounting/test_ledger",
    ),
    _break(
        "heads recorded elsewhere are not compared",
        _CHAIN,
        "find_faults",
        Force("A.get(B.sequence) != B.hash", False),
        "accounting/test_ledger",
    ),
    _break(
        "entries are not committed",
        _CHAIN,
        "open_transaction",
        Replace('A.execute("COMMIT")', 'A.execute("ROLLBACK")'),
        "accounting/test_ledger",
    ),
)

_JOURNALS = (
    _break(
        "answers are used without being stored",
        _DOORWAY,
        "PrivacyGate._release",
        Drop("self._journal.store_answers(...)"),
        "private/test_journal",
    ),
    _break(
        "answers are used before they are on disk",
        _LINES,
        "AppendLog.append",
        Drop("F.flush()\nos.fsync(F.fileno())"),
        "private/test_crash_safety",
    ),
    _break(
        "what was paid for and lost is drawn again without paying",
        _DOORWAY,
        "PrivacyGate._release",
        Replace(
            "self._charge(X)",
            "[measurement for measurement in X if not (self._journal and measurement in self._journal.lost_measurements)]",
        ),
        "private/test_journal",
    ),
    _break(
        "lost answers are forgotten when a run is resumed",
        _OPENING,
        "_resume_run",
        Drop("A.reconcile(B)"),
        "private/test_journal",
    ),
    _break(
        "a stored answer is given to any question",
        _JOURNAL,
        "Journal.take_answers",
        Force("(A.measurement, A.query) != (B, C)", False),
        "private/test_journal",
    ),
    _break(
        "a stored answer is given to any question of the same name",
        _JOURNAL,
        "Journal.take_answers",
        Replace("(A.measurement, A.query) != (B, C)", "A.measurement != B"),
        "private/test_journal",
    ),
    _break(
        "without a ledger payments are written down nowhere",
        _DOORWAY,
        "PrivacyGate._charge",
        Drop("self._journal.record_charges(...)"),
        "private/test_crash_safety",
    ),
    _break(
        "stored answers that were not paid for are given",
        _JOURNAL,
        "Journal.reconcile",
        Force("min(...) < 0", False),
        "private/test_journal",
    ),
    _break(
        "a run is resumed with another budget",
        _JOURNAL,
        "_require_same_run",
        Force("A", False),
        "private/test_journal",
    ),
    _break(
        "the stamp of injected noise is lost when a run is resumed from its journal",
        _OPENING,
        "_resume_run",
        Drop("A.uses_real_noise &= B"),
        "private/test_journal",
    ),
    _break(
        "an interrupted run gives the promise back that it may still draw",
        _DOORWAY,
        "suspend_run",
        Force("A and B.account.draws", False),
        "private/test_journal",
    ),
    _break(
        "a run that ended draws more without a ledger",
        _OPENING,
        "_run_from_journal",
        Replace("F(..., closed=X)", "False"),
        "private/test_journal",
    ),
    _break(
        "a new run takes the place of an interrupted one",
        _OPENING,
        "_start_run",
        Replace("refuse_existing_journal(P)", "P.unlink(missing_ok=True)"),
        "private/test_journal",
    ),
    _break(
        "half a line stays where it is",
        _LINES,
        "AppendLog.reopen",
        Drop("F.truncate(W)\nF.seek(W)"),
        "private/test_append_log",
    ),
    _break(
        "damaged lines are taken for whole ones",
        _LINES,
        "_parse_lines",
        Force("A != B", False),
        "private/test_append_log",
    ),
    _break(
        "two processes use one journal",
        _LINES,
        "_lock_exclusively",
        Drop("fcntl.flock(...)"),
        "private/test_append_log",
    ),
    _break(
        "a journal is written to after it failed",
        _LINES,
        "AppendLog.append",
        Drop("self.release()"),
        "private/test_append_log",
    ),
)

_PERSONS = (
    _break(
        "all rows of a person count in memory",
        _ROWS,
        "BoundedRows.read_codes",
        Force("A.id is None", True),
        "engines/test_contribution_bounding",
    ),
    _break(
        "all rows of a person count in a stream",
        _ROWS,
        "BoundedRows.read_batches",
        Force("A.id is None", True),
        "engines/test_contribution_bounding",
    ),
    _break(
        "a release forgets that it protects persons",
        _OPENING,
        "privacy_unit_of",
        Force("A.id is None", True),
        "private/test_sensitivity",
    ),
    _break(
        "one row too many counts in memory",
        _BOUNDING,
        "bound_contributions",
        Replace("A < B", "A <= B"),
        "engines/test_contribution_bounding",
    ),
    _break(
        "one row too many counts in a stream",
        _BOUNDING,
        "SmallestKeys._keep_smallest",
        Replace("A < B", "A <= B"),
        "engines/test_contribution_bounding",
    ),
    _break(
        "the first rows of a person count",
        _BOUNDING,
        "RowHasher.compute_keys",
        Replace("kernels.hash_rows(F(C.T), ..., K)", "K = np.arange(len(C))"),
        "engines/test_contribution_bounding",
    ),
    _break(
        "the key that chooses rows is always the same",
        _OPENING,
        "open_private",
        Replace("F(..., key=X)", "byte_size(16)"),
        "private/test_table",
    ),
    _break(
        "other rows count once values are bought",
        _ROWS,
        "BoundedRows.with_schema",
        Drop("BoundedRows(A, B, C, X)"),
        "engines/test_contribution_bounding",
    ),
    _break(
        "blank ids are persons of their own",
        _TEXTS,
        "normalize_ids",
        Replace(
            "B = pc.ascii_trim_whitespace(T)\n...\nreturn pc.if_else(E, X, B).cast(...)",
            "T",
        ),
        "engines/test_contribution_bounding",
    ),
)

_LEAKS = (
    _break(
        "the number of rows is in the repr of a table",
        _GATE,
        "PrivateTable.__repr__",
        Replace("return X", 'f"PrivateTable({self._engine.count([()], self.recoding)[0]} max_rows)"'),
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
        "an error quotes what the reader said",
        _SOURCE,
        "attempt",
        Replace("R = F(E)", 'R = f": {E}"'),
        "private/test_table",
    ),
    _break(
        "the number of rows decides on the engine",
        _ENGINE_OPENING,
        "choose_engine_kind",
        Replace(
            "(S.byte_size or 0) > M and S.rereadable",
            "S.rereadable and sum(arrow.num_rows for arrow in S.batches(S.schema.names)) > M",
        ),
        "engines/test_factory",
    ),
    _break(
        "texts are read together, and one by one only if that fails",
        _COLUMNS,
        "RangedCodec._parse_texts",
        Replace(
            "P = (X := F(T, R))\nV = G(P, T, K)",
            "pa.array(np.ones(len(T), np.bool_))",
        ),
        "encoding/test_column_codecs",
    ),
    _break(
        "spellings of missing are compared all at once",
        _COLUMNS,
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

_OF_BASKETS = (
    _break(
        "baskets: the scale of draws is halved",
        _MECHANISMS,
        "SystemNoise.choose_candidates",
        Replace("A.scale", "A.scale / 2"),
        "private/test_exponential",
    ),
    _break(
        "baskets: draws come from a seed",
        _PEELING,
        "system_random_words",
        Replace(
            "np.frombuffer(secrets.token_bytes(8 * N), T)",
            "np.random.default_rng(0).integers(0, 2**64, N, T)",
        ),
        "private/test_exponential",
    ),
    _break(
        "baskets: floating point decides what is too close to call",
        _PEELING,
        "_certain_order",
        Replace("A if B else None", "A"),
        "private/test_exponential",
    ),
    _break(
        "baskets: items are charged for one basket of a person",
        _BASKETS,
        "PrivateBaskets._selection_cost",
        Replace("Exponential.within(A, X, ...)", "1"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: every draw may cost what all may cost together",
        _SPENDS,
        "Exponential.for_epsilon",
        Replace("A / min(...)", "A"),
        "accounting/test_costs",
    ),
    _break(
        "baskets: supports count as monotone where units are replaced",
        _BASKETS,
        "PrivateBaskets._selection_cost",
        Replace('A.neighbors == "add-remove_log"', "True"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: a run takes replaced units for monotone",
        _RUN,
        "_check_sensitivity",
        Force("A and B.monotone and C", False),
        "accounting/test_budget",
    ),
    _break(
        "baskets: ranks are charged for one basket that comes or goes",
        _BASKETS,
        "PrivateBaskets._choose_rank",
        Replace("A.score(1)", "A.max_rows"),
        "private/test_baskets",
    ),
    _break(
        "baskets: ranks are charged as monotone",
        _BASKETS,
        "PrivateBaskets._choose_rank",
        Replace("Exponential.within(A, B)", "Exponential.within(A, B, monotone=True)"),
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
        "baskets: bases are charged for one basket",
        _BASKETS,
        "PrivateBaskets.measure_bases",
        Replace("Laplace.within(A, X)", "1"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: items that are bought are charged as one",
        _BASKETS,
        "PrivateBaskets.discover_items",
        Replace("A.l2_sensitivity_squared * B", "A.l2_sensitivity_squared"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: the threshold of bought items is that of one item",
        _BASKETS,
        "PrivateBaskets.discover_items",
        Replace("A.max_rows * B", "A.max_rows"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: all items of a basket are looked at",
        _MINING,
        "BasketEngine.count_items",
        Replace("A.limit_items(...)", "A.items"),
        "engines/test_baskets",
    ),
    _break(
        "baskets: the first items of a basket are looked at",
        _BASKET_READING,
        "BoundedBaskets.limit_items",
        Replace("np.lexsort((A, B))", "np.arange(len(B))"),
        "engines/test_baskets",
    ),
    _break(
        "baskets: all items that occur are bought",
        _BASKETS,
        "PrivateBaskets.discover_items",
        Replace(
            "(F,) = G(D, L, H)\nI = tuple(sorted((X := F), ...))",
            "self._engine.count_items(L)",
        ),
        "private/test_baskets",
    ),
    _break(
        "baskets: choices are not paid for",
        _BASKETS,
        "PrivateBaskets._choose",
        Replace("(F,) = self._release(D, Q, lambda A: [E])\nreturn F", "return E"),
        "private/test_baskets",
    ),
    _break(
        "baskets: bases are not paid for",
        _BASKETS,
        "PrivateBaskets.measure_bases",
        Replace(
            "self._release_with_noise(P, S, Q, lambda: E)",
            "self._mechanisms.add_noise([*zip(E, S, strict=True)])",
        ),
        "private/test_baskets",
    ),
    _break(
        "baskets: bought items are not paid for",
        _BASKETS,
        "PrivateBaskets.discover_items",
        Replace("self._release(D, Q, L)", "L(0)"),
        "private/test_baskets",
    ),
    _break(
        "baskets: they are read before the promise is reserved",
        _OPENING,
        "open_baskets",
        Replace(
            "C = BasketEngine(*A)\nR = S",
            "C = BasketEngine(*A)\nC.prepare_table()\nR = S",
        ),
        "private/test_baskets",
    ),
    _break(
        "baskets: pure steps may cost more than is planned for all of them",
        _ACCOUNT,
        "_fits_pure_steps",
        Replace("sum(A) <= B", "True"),
        "accounting/test_budget",
    ),
    _break(
        "baskets: the largest of several steps is compared with the one that is planned",
        _ACCOUNT,
        "_fits_pure_steps",
        Replace("sum(A)", "max(A, default=0)"),
        "accounting/test_budget",
    ),
    _break(
        "baskets: Laplace noise may be charged less than it costs",
        _SPENDS,
        "Laplace.__post_init__",
        Force("A is not None and A < B", False),
        "accounting/test_costs",
    ),
    _break(
        "baskets: draws may be charged less than they cost",
        _SPENDS,
        "Exponential.__post_init__",
        Force("min(A.pure_epsilons) < B", False),
        "accounting/test_costs",
    ),
    _break(
        "baskets: all of a person count",
        _BASKET_READING,
        "_group_into_baskets",
        Replace("K, C = K[:, O], C[O]\n...\nN = kept(B, X)", "len(C)"),
        "engines/test_baskets",
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: the key that chooses them is always the same",
        _OPENING,
        "open_baskets",
        Replace("BasketEngine(A, B, X)", "byte_size(16)"),
        "private/test_baskets",
    ),
    _break(
        "baskets: an item counts as often as a basket holds it",
        _BASKET_READING,
        "_group_into_baskets",
        Replace("A & ~B & C", "A & C"),
        "engines/test_baskets",
    ),
    _break(
        "baskets: their number is told where it is private",
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
        "baskets: a release forgets that it protects persons",
        _OPENING,
        "privacy_unit_of",
        Drop("F(..., max_rows=X)"),
        "private/test_basket_sensitivity",
    ),
    _break(
        "baskets: a table's rows and baskets are added up",
        _LEDGER,
        "_unit_identity",
        Replace("return A, B, X", '""'),
        "private/test_baskets",
    ),
)

MUTATIONS: tuple[Mutation, ...] = (
    *_NOISE,
    *_SENSITIVITY,
    *_PAYING,
    *_ACCOUNTING,
    *_THRESHOLDS,
    *_LEDGERS,
    *_JOURNALS,
    *_PERSONS,
    *_LEAKS,
    *_OF_BASKETS,
)
"""All ways, in the order of the rules: noise, sensitivity, payment, accounts, thresholds, records, persons, leaks; and
again for baskets.
"""
