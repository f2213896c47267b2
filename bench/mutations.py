"""Ways to break the guarantee, each with the tests that should notice.

A mutation replaces one text of one file of ``src/dpsyn``. It must leave a program that runs: what the tests are to see
is a wrong answer, not a missing name.
"""

from __future__ import annotations

from dataclasses import dataclass

_GATE, _OPENING, _MECHANISMS = "private/table.py", "private/opening.py", "private/mechanisms.py"
_DOORWAY = "private/doorway.py"
_JOURNAL, _LINES = "private/journal.py", "private/lines.py"
_SPENDS, _ACCOUNT, _LEDGER, _RUN = (f"accounting/{name}.py" for name in ("spends", "account", "ledger", "run"))
_BASKETS, _PEELING = "private/baskets.py", "private/peeling.py"
_MINING, _BASKET_READING = (f"engines/transactions/{name}.py" for name in ("engine", "reading"))
_CHAIN, _PROTECTION = "accounting/chain.py", "accounting/protection.py"
_BOUNDING, _ROWS, _COLUMNS = "engines/bounding.py", "engines/rows.py", "records/columns.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One way to break the source.

    Attributes:
        name: what is broken, in words.
        file: where, below ``src/dpsyn``.
        old: the text that is there, exactly once.
        new: the text in its place.
        tests: the files of tests that should notice.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def _broken(name: str, file: str, old: str, new: str, *tests: str) -> Mutation:
    return Mutation(name=name, file=file, old=old, new=new, tests=tuple(f"tests/{test}.py" for test in tests))


_NOISE = (
    _broken(
        "σ is halved",
        _MECHANISMS,
        "_gaussian(spend.sigma * 2.0**spend.lattice)",
        "_gaussian(spend.sigma / 2 * 2.0**spend.lattice)",
        "private/test_noise",
    ),
    _broken(
        "the scale of Laplace noise is halved",
        _MECHANISMS,
        "_laplace(spend.scale), exact.ravel()",
        "_laplace(spend.scale / 2), exact.ravel()",
        "private/test_noise",
    ),
    _broken(
        "empty cells get no noise",
        _MECHANISMS,
        "return np.array(measurement(values), np.int64)",
        "return np.where(values == 0, 0, np.array(measurement(values), np.int64))",
        "private/test_noise",
    ),
    _broken(
        "one draw serves all cells of a chunk",
        _MECHANISMS,
        "return np.array(measurement(values), np.int64)",
        "return values + (measurement(values[:1])[0] - values[0])",
        "private/test_noise",
    ),
    _broken(
        "all chunks of a scale get the same noise",
        _MECHANISMS,
        "return np.array(measurement(values), np.int64)",
        """noise = measurement(np.zeros(CHUNK, np.int64))
    return values + np.array(_drawn.__dict__.setdefault(id(measurement), noise)[: len(values)])""",
        "private/test_noise",
    ),
    _broken(
        "all answers of a question get the noise of the first",
        _MECHANISMS,
        "for chunk in _chunks(exact, spend)",
        "for chunk in _chunks(exact, answers[0][1])",
        "private/test_noise",
    ),
    _broken(
        "noise comes from a seed",
        _MECHANISMS,
        "chunks = pool.map(_drawn, (chunk for exact, spend in answers for chunk in _chunks(exact, spend)))",
        """rng = np.random.default_rng(0)
            chunks = [
                np.rint(
                    rng.normal(exact.ravel() * 2.0**spend.lattice, spend.sigma * 2.0**spend.lattice)
                    if isinstance(spend, Gaussian)
                    else rng.laplace(exact.ravel(), spend.scale)
                ).astype(np.int64)
                for exact, spend in answers
            ]""",
        "private/test_noise",
    ),
    _broken(
        "scores are released without noise",
        _GATE,
        "return noisy / np.float64(2**spend.lattice)",
        "return np.array(exact(), np.float64)",
        "private/test_noise",
    ),
    _broken(
        "noise that a test injected is not stamped",
        _OPENING,
        "private=type(noise) is SystemNoise",
        "private=True",
        "private/test_table",
    ),
    _broken(
        "the stamp of injected noise is lost when a run is resumed",
        _RUN,
        "noise_is_private=known.noise_is_private",
        "noise_is_private=True",
        "accounting/test_ledger",
    ),
    _broken(
        "the stamp of injected noise is lost when a certificate is read",
        "accounting/certificate.py",
        "noise_is_private=stamped_private(data)",
        "noise_is_private=True",
        "accounting/test_certificate",
        "private/test_table",
    ),
    _broken(
        "one of two stamps of a certificate is enough",
        "accounting/certificate.py",
        "return all(stamp is True for stamp in stamps)",
        "return any(stamp is True for stamp in stamps)",
        "accounting/test_certificate",
    ),
)

_SENSITIVITY = (
    _broken(
        "marginals are charged for one row",
        _GATE,
        "[Gaussian.within(share, self._run.protection.l2_squared) for share in shares]",
        "[Gaussian.within(share, 1) for share in shares]",
        "private/test_sensitivity",
    ),
    _broken(
        "marginals with Laplace noise are charged for one row",
        _GATE,
        "Laplace.within(epsilon, self._run.protection.l1)",
        "Laplace.within(epsilon, 1)",
        "private/test_sensitivity",
    ),
    _broken(
        "fine histograms are charged for one row",
        _GATE,
        """spend = Gaussian.within(share, self._run.protection.l2_squared)
        purpose = f"fine""",
        """spend = Gaussian.within(share, 1)
        purpose = f"fine""",
        "private/test_sensitivity",
    ),
    _broken(
        "ranges are charged for one row",
        _GATE,
        """spend = Gaussian.within(share, self._run.protection.l2_squared)
        column = magnitude""",
        """spend = Gaussian.within(share, 1)
        column = magnitude""",
        "private/test_sensitivity",
    ),
    _broken(
        "values are charged for one row",
        _GATE,
        "noise = Gaussian.within(share, protection.l2_squared)",
        "noise = Gaussian.within(share, 1)",
        "private/test_sensitivity",
    ),
    _broken(
        "scores are charged for one row",
        _GATE,
        "scores * self._run.protection.score(per_row) ** 2",
        "scores * per_row**2",
        "private/test_sensitivity",
    ),
    _broken(
        "many scores are charged as one",
        _GATE,
        "scores * self._run.protection.score(per_row) ** 2",
        "self._run.protection.score(per_row) ** 2",
        "private/test_sensitivity",
    ),
    _broken(
        "marginals of several recodings get half of their noise",
        _GATE,
        "spends = [Gaussian.within(share, l2_squared) for _, shares in parts",
        "spends = [Gaussian.within(share, l2_squared / 4) for _, shares in parts",
        "private/test_sensitivity",
    ),
    _broken("dependence is charged as 1 a row", _GATE, "per_row=4)", "per_row=1)", "private/test_sensitivity"),
    _broken(
        "predictions are not rounded",
        _GATE,
        "np.asarray(np.rint(prediction), np.int64)",
        "np.asarray(prediction, np.float64)",
        "private/test_table",
    ),
    _broken(
        "k rows of a person are charged as √k",
        _PROTECTION,
        "self.rows**2 * self._changes",
        "self.rows * self._changes",
        "accounting/test_spends",
    ),
    _broken(
        "an exchanged unit is charged like one that left",
        _PROTECTION,
        'return 1 if self.neighbours == "add-remove" else 2',
        "return 1",
        "accounting/test_spends",
    ),
    _broken(
        "bounds are read off exact counts",
        _GATE,
        "magnitude.narrowed(attribute, _marginal((name,), raw, spend))",
        "magnitude.narrowed(attribute, Marginal((name,), counted()[0], 0, spend.sigma))",
        "private/test_sensitivity",
        "private/test_table",
    ),
)

_PAYING = (
    _broken(
        "marginals are not paid for",
        _GATE,
        "self._noised(purposes, spends, self._meaning(places), lambda: self._engine.count(places, self.recoding))",
        "self._mechanisms.noised([*zip(self._engine.count(places, self.recoding), spends, strict=True)])",
        "private/test_table",
    ),
    _broken(
        "fine histograms are not paid for",
        _GATE,
        "self._noised([purpose], [spend], fine.sizes[place], lambda: self._engine.count([(place,)], fine))",
        "self._mechanisms.noised([(self._engine.count([(place,)], fine)[0], spend)])",
        "private/test_table",
    ),
    _broken(
        "scores are not paid for",
        _GATE,
        "self._noised([purpose], [spend], question, lambda: [np.array(exact(), np.int64)])",
        "self._mechanisms.noised([(np.array(exact(), np.int64), spend)])",
        "private/test_table",
    ),
    _broken(
        "values are not paid for",
        _GATE,
        "(values,) = self._answered(draws, name, listed)",
        "(values,) = listed(0)",
        "private/test_table",
    ),
    _broken(
        "ranges are not paid for",
        _GATE,
        '(raw,) = self._noised([f"range of {name}"], [spend], name, counted)',
        "(raw,) = self._mechanisms.noised([(counted()[0], spend)])",
        "private/test_table",
    ),
    _broken("no answer is paid for", _DOORWAY, "            self._pay(lacking)\n", "", "private/test_table"),
    _broken(
        "answers are paid for after counting",
        _DOORWAY,
        "            self._pay(lacking)\n",
        "            sealed(lambda: drawn(len(stored)))\n            self._pay(lacking)\n",
        "private/test_table",
    ),
    _broken(
        "answers are paid for after drawing",
        _DOORWAY,
        """            self._pay(lacking)
            new: list[_Answer] = sealed(lambda: drawn(len(stored)))
""",
        """            new: list[_Answer] = sealed(lambda: drawn(len(stored)))
            self._pay(lacking)
""",
        "private/test_killing",
    ),
    _broken(
        "draws are written to no ledger",
        _RUN,
        "self.head = self.ledger.record(self.name, draws, len(self.account.draws))",
        "pass",
        "private/test_killing",
    ),
    _broken(
        "rows are read before the promise is reserved",
        _OPENING,
        "noise = mechanisms or SystemNoise()  #",
        """noise = mechanisms or SystemNoise()
    open_engine(source, schema, kind=engine, key=secrets.token_bytes(16)).prepare()  #""",
        "private/test_table",
    ),
    _broken(
        "threads that share a run pay at the same time",
        _RUN,
        "with self._lock:",
        "if True:",
        "accounting/test_ledger",
    ),
    _broken(
        "dependence of three attributes is charged like that of two",
        _GATE,
        "if any(len(pair) != 2 for pair in pairs):",
        "if False:",
        "private/test_table",
    ),
    _broken(
        "a prediction may be so large that sums overflow",
        _GATE,
        "LARGEST_PREDICTION = 2**40",
        "LARGEST_PREDICTION = 2**62",
        "private/test_table",
    ),
    _broken(
        "a failing engine speaks for itself", _DOORWAY, "except DPSynError:", "except Exception:", "private/test_table"
    ),
    _broken("a drafted schema is released", _OPENING, "    schema.require_public()\n", "", "private/test_table"),
)

_ACCOUNTING = (
    _broken(
        "Gaussian noise beyond the budget is allowed",
        _ACCOUNT,
        "if gaussian > planned.rho:",
        "if False:",
        "accounting/test_ledger",
    ),
    _broken(
        "thresholds beyond the budget are allowed",
        _ACCOUNT,
        "if total.delta > planned.threshold_delta:",
        "if False:",
        "accounting/test_budget",
        "accounting/test_certificate",
        "accounting/test_ledger",
    ),
    _broken(
        "pure steps beyond the budget are allowed",
        _ACCOUNT,
        "if not _matched(total.pure, planned.pure):",
        "if False:",
        "accounting/test_budget",
        "accounting/test_certificate",
        "accounting/test_ledger",
    ),
    _broken(
        "a run records draws without asking its account",
        _RUN,
        "after = after.charge(draw)",
        "after = Account(budget=after.budget, draws=(*after.draws, draw), total=after.total.then(draw.spend))",
        "private/test_table",
    ),
    _broken(
        "a threshold for fewer rows than a person has is paid",
        _RUN,
        "if spend.rows < protection.rows:",
        "if False:",
        "accounting/test_budget",
        "accounting/test_certificate",
        "accounting/test_ledger",
    ),
    _broken(
        "a budget that does not keep its promise is opened",
        _RUN,
        "        check_plan(budget)\n",
        "",
        "accounting/test_budget",
        "accounting/test_certificate",
        "accounting/test_ledger",
    ),
    _broken(
        "σ is rounded down",
        "accounting/conversion.py",
        """while Fraction(sigma) ** 2 < target:
        sigma = math.nextafter(sigma, math.inf)
    while Fraction(math.nextafter(sigma, 0)) ** 2 >= target:
        sigma = math.nextafter(sigma, 0)
""",
        """while Fraction(sigma) ** 2 > target:
        sigma = math.nextafter(sigma, 0)
""",
        "accounting/test_spends",
    ),
    _broken(
        "the scale of Laplace noise is rounded down",
        _SPENDS,
        "scale=_float_above(exact(sensitivity) / epsilon)",
        "scale=math.nextafter(_float_above(exact(sensitivity) / epsilon), 0)",
        "accounting/test_spends",
    ),
    _broken(
        "costs are rounded down",
        "accounting/exact.py",
        "Fraction(-(-value.numerator * GRAINS // value.denominator), GRAINS)",
        "Fraction(value.numerator * GRAINS // value.denominator, GRAINS)",
        "accounting/test_exact",
        "accounting/test_spends",
    ),
    _broken(
        "Gaussian noise may be drawn on a coarse lattice",
        _SPENDS,
        " or self.sigma * 2**self.lattice < FINE:",
        ":",
        "accounting/test_spends",
    ),
)

_THRESHOLDS = (
    _broken(
        "the threshold is lower by k",
        _SPENDS,
        "noise.log_tail(cut - rows)",
        "noise.log_tail(cut)",
        "accounting/test_spends",
    ),
    _broken(
        "the threshold is that of one key, not of k",
        _SPENDS,
        "math.log(rows) + noise.log_tail(cut - rows)",
        "noise.log_tail(cut - rows)",
        "accounting/test_spends",
    ),
    _broken(
        "values are bought with the threshold for one row",
        _GATE,
        "Threshold.within(delta, noise, protection.rows)",
        "Threshold.within(delta, noise)",
        "private/test_sensitivity",
    ),
    _broken(
        "noisy counts meet the threshold in other steps",
        _MECHANISMS,
        "if number >= spend.cut * steps",
        "if number >= spend.cut",
        "private/test_noise",
    ),
    _broken(
        "values below the threshold are listed",
        _MECHANISMS,
        "if number >= spend.cut * steps",
        "if number > 0",
        "private/test_noise",
    ),
    _broken(
        "all values that occur are taken",
        _GATE,
        "attribute.bought(sorted(values))",
        "attribute.bought(sorted(self._engine.count_texts(name)))",
        "private/test_table",
    ),
)

_LEDGERS = (
    _broken(
        "a certificate is compared with the ledger by the entry that it names alone",
        _LEDGER,
        "faults += [line for one in stated for line in disagreements(one, entries, known)]",
        "faults += []",
        "accounting/test_agreement",
    ),
    _broken(
        "a certificate may state other draws than the ledger",
        "accounting/agreement.py",
        '"protection", "draws", "certified_epsilon"',
        '"protection", "certified_epsilon"',
        "accounting/test_agreement",
    ),
    _broken(
        "an open run holds nothing",
        _LEDGER,
        "rho=budget.reserved_rho,",
        "rho=Fraction(0),",
        "accounting/test_ledger",
    ),
    _broken(
        "closing gives the whole promise back",
        _LEDGER,
        '_drawn(tuple(entry.data for entry in transaction.entries(run) if entry.kind == "draw"))',
        "_drawn(())",
        "accounting/test_ledger",
    ),
    _broken(
        "closing gives the unspent part back twice",
        _LEDGER,
        'replace(run, rho=exact(data["rho"]),',
        'replace(run, rho=2 * exact(data["rho"]) - run.rho,',
        "accounting/test_ledger",
    ),
    _broken(
        "a closed run goes on",
        _LEDGER,
        'if "close" in kinds:',
        "if False:",
        "accounting/test_ledger",
    ),
    _broken(
        "the cap is not checked",
        _LEDGER,
        "if cap and known.rho + budget.reserved_rho > cap.rho:",
        "if False:",
        "accounting/test_ledger",
    ),
    _broken(
        "the cap's δ is not checked",
        _LEDGER,
        "if cap and known.delta + budget.threshold_delta > cap.threshold_delta:",
        "if False:",
        "accounting/test_ledger",
    ),
    _broken(
        "different units are added up",
        _LEDGER,
        "if before and _whom(before) != _whom(protection):",
        "if False:",
        "accounting/test_ledger",
    ),
    _broken(
        "the hashes of entries are not checked",
        _CHAIN,
        "if entry.hash != hash_of(fields):",
        "if False:",
        "accounting/test_ledger",
    ),
    _broken(
        "the chain of hashes is not checked",
        _CHAIN,
        "if entry.previous != previous:",
        "if False:",
        "accounting/test_ledger",
    ),
    _broken(
        "heads recorded elsewhere are not compared",
        _CHAIN,
        "if hashes.get(head.sequence) != head.hash:",
        "if False:",
        "accounting/test_ledger",
    ),
    _broken("entries are not committed", _CHAIN, 'execute("COMMIT")', 'execute("ROLLBACK")', "accounting/test_ledger"),
)

_JOURNALS = (
    _broken(
        "answers are used without being stored",
        _DOORWAY,
        "                self._journal.store(lacking, question, new)\n",
        "                pass\n",
        "private/test_journal",
    ),
    _broken(
        "answers are used before they are on disk",
        _LINES,
        "                file.flush()\n                os.fsync(file.fileno())\n",
        "",
        "private/test_killing",
    ),
    _broken(
        "what was paid for and lost is drawn again without paying",
        _DOORWAY,
        "            self._pay(lacking)\n",
        "            self._pay([draw for draw in lacking if not (self._journal and draw in self._journal.lost)])\n",
        "private/test_journal",
    ),
    _broken(
        "lost answers are forgotten when a run is resumed",
        _OPENING,
        "        journal.reconcile(run.account.draws)\n",
        "",
        "private/test_journal",
    ),
    _broken(
        "a stored answer is given to any question",
        _JOURNAL,
        "if (record.draw, record.question) != (draw.to_data(), asked):",
        "if False:",
        "private/test_journal",
    ),
    _broken(
        "a stored answer is given to any question of the same name",
        _JOURNAL,
        "if (record.draw, record.question) != (draw.to_data(), asked):",
        "if record.draw != draw.to_data():",
        "private/test_journal",
    ),
    _broken(
        "without a ledger payments are written down nowhere",
        _DOORWAY,
        "            self._journal.pay(draws)\n",
        "            pass\n",
        "private/test_killing",
    ),
    _broken(
        "stored answers that were not paid for are given",
        _JOURNAL,
        "if min(left.values(), default=0) < 0:",
        "if False:",
        "private/test_journal",
    ),
    _broken(
        "a run is resumed with another budget", _JOURNAL, "    if differ:\n", "    if False:\n", "private/test_journal"
    ),
    _broken(
        "the stamp of injected noise is lost when a run is resumed from its journal",
        _OPENING,
        "        run.noise_is_private &= journal.noise_is_private\n",
        "",
        "private/test_journal",
    ),
    _broken(
        "an interrupted run gives the promise back that it may still draw",
        _DOORWAY,
        "if journal and run.account.draws:",
        "if False:",
        "private/test_journal",
    ),
    _broken(
        "a run that ended draws more without a ledger",
        _OPENING,
        "closed=journal.ended",
        "closed=False",
        "private/test_journal",
    ),
    _broken(
        "a new run takes the place of an interrupted one",
        _OPENING,
        "        refuse_left_behind(path)\n",
        "        path.unlink(missing_ok=True)\n",
        "private/test_journal",
    ),
    _broken(
        "half a line stays where it is",
        _LINES,
        "                file.truncate(whole)\n                file.seek(whole)\n",
        "",
        "private/test_lines",
    ),
    _broken("damaged lines are taken for whole ones", _LINES, "if given != digest:", "if False:", "private/test_lines"),
    _broken(
        "two processes use one journal",
        _LINES,
        "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "pass",
        "private/test_lines",
    ),
    _broken(
        "a journal is written to after it failed",
        _LINES,
        "                self.release()\n                raise\n",
        "                raise\n",
        "private/test_lines",
    ),
)

_PERSONS = (
    _broken(
        "all rows of a person count in memory",
        _ROWS,
        """if self.schema.unit is None:
            return list""",
        """if True:
            return list""",
        "engines/test_bounding",
    ),
    _broken(
        "all rows of a person count in a stream",
        _ROWS,
        """if self.schema.unit is None:
            yield from""",
        """if True:
            yield from""",
        "engines/test_bounding",
    ),
    _broken(
        "a release forgets that it protects persons",
        _OPENING,
        "if schema.unit is None:",
        "if True:",
        "private/test_sensitivity",
    ),
    _broken(
        "one row too many counts in memory",
        _BOUNDING,
        "chosen[order[_ranks(keys[:, order]) < rows]] = True",
        "chosen[order[_ranks(keys[:, order]) <= rows]] = True",
        "engines/test_bounding",
    ),
    _broken(
        "one row too many counts in a stream",
        _BOUNDING,
        "_ranks(keys) < self._rows",
        "_ranks(keys) <= self._rows",
        "engines/test_bounding",
    ),
    _broken(
        "the first rows of a person count",
        _BOUNDING,
        "kernels.hash_rows(np.ascontiguousarray(codes.T), words, self._row, keys[2])",
        "keys[2] = np.arange(len(codes))",
        "engines/test_bounding",
    ),
    _broken(
        "the key that chooses rows is always the same",
        _OPENING,
        "key=secrets.token_bytes(16)",
        "key=bytes(16)",
        "private/test_table",
    ),
    _broken(
        "other rows count once values are bought",
        _ROWS,
        "Rows(self.source, schema, self.key, self.spelled)",
        "Rows(self.source, schema, self.key)",
        "engines/test_bounding",
    ),
    _broken(
        "blank ids are persons of their own",
        "engines/texts.py",
        "pc.if_else(empty, pa.scalar(None, bare.type), bare)",
        "pc.if_else(empty, texts, bare)",
        "engines/test_bounding",
    ),
)

_LEAKS = (
    _broken(
        "the number of rows is in the repr of a table",
        _GATE,
        """f"PrivateTable({', '.join(self.recoding.names)})\"""",
        'f"PrivateTable({self._engine.count([()], self.recoding)[0]} rows)"',
        "private/test_table",
    ),
    _broken(
        "an engine shows what it holds",
        "engines/engine.py",
        'f"<{type(self).__name__}: private rows>"',
        'f"<{type(self).__name__}: {vars(self)}>"',
        "engines/test_contract",
    ),
    _broken(
        "an error quotes what the reader said",
        "sources/source.py",
        "reason = _reason(error)",
        'reason = f": {error}"',
        "private/test_table",
    ),
    _broken(
        "the number of rows decides on the engine",
        "engines/opening.py",
        "(source.bytes or 0) > MOST_BYTES and source.again",
        "source.again and sum(batch.num_rows for batch in source.batches(schema.columns)) > MOST_BYTES",
        "engines/test_opening",
    ),
    _broken(
        "texts are read together, and one by one only if that fails",
        _COLUMNS,
        "plain = _matches(texts, pattern)",
        "plain = pa.array(np.ones(len(texts), np.bool_))",
        "records/test_columns",
    ),
    _broken(
        "spellings of missing are compared all at once",
        _COLUMNS,
        """found = super()._spells_null(values)
        for number in self._null_numbers:
            if values.dtype.kind == "f" or number == int(number):
                found |= values == values.dtype.type(number)
        return found
""",
        "return np.isin(values, list(self._null_numbers))\n",
        "records/test_columns",
    ),
)

_OF_BASKETS = (
    _broken(
        "baskets: the scale of draws is halved",
        _MECHANISMS,
        "peeled(scores, spend.scale, spend.draws)",
        "peeled(scores, spend.scale / 2, spend.draws)",
        "private/test_peeling",
    ),
    _broken(
        "baskets: draws come from a seed",
        _PEELING,
        "np.frombuffer(secrets.token_bytes(8 * number), np.uint64)",
        "np.random.default_rng(0).integers(0, 2**64, number, np.uint64)",
        "private/test_peeling",
    ),
    _broken(
        "baskets: floating point decides what is too close to call",
        _PEELING,
        "return order[:draws] if certain else None",
        "return order[:draws]",
        "private/test_peeling",
    ),
    _broken(
        "baskets: items are charged for one basket of a person",
        _BASKETS,
        "Exponential.within(epsilon, self.protection.rows, monotone=monotone, draws=draws)",
        "Exponential.within(epsilon, 1, monotone=monotone, draws=draws)",
        "private/test_basket_sensitivity",
    ),
    _broken(
        "baskets: every draw may cost what all may cost together",
        "accounting/spends.py",
        "each = round_down(charged / min(draws, MOST_DRAWS))",
        "each = round_down(charged)",
        "accounting/test_spends",
    ),
    _broken(
        "baskets: supports count as monotone where units are replaced",
        _BASKETS,
        'monotone = self.protection.neighbours == "add-remove"',
        "monotone = True",
        "private/test_basket_sensitivity",
    ),
    _broken(
        "baskets: a run takes replaced units for monotone",
        _RUN,
        'if isinstance(spend, Exponential) and spend.monotone and protection.neighbours == "replace":',
        "if False:",
        "accounting/test_budget",
    ),
    _broken(
        "baskets: ranks are charged for one basket that comes or goes",
        _BASKETS,
        "Exponential.within(epsilon, self.protection.score(1))",
        "Exponential.within(epsilon, self.protection.rows)",
        "private/test_baskets",
    ),
    _broken(
        "baskets: ranks are charged as monotone",
        _BASKETS,
        "Exponential.within(epsilon, self.protection.score(1))",
        "Exponential.within(epsilon, self.protection.score(1), monotone=True)",
        "private/test_baskets",
    ),
    _broken(
        "baskets: scores of ranks change by two",
        _BASKETS,
        "return -off",
        "return -2 * off",
        "private/test_basket_sensitivity",
    ),
    _broken(
        "baskets: bases are charged for one basket",
        _BASKETS,
        "Laplace.within(epsilon, self.protection.l1)",
        "Laplace.within(epsilon, 1)",
        "private/test_basket_sensitivity",
    ),
    _broken(
        "baskets: items that are bought are charged as one",
        _BASKETS,
        "self.protection.l2_squared * longest",
        "self.protection.l2_squared",
        "private/test_basket_sensitivity",
    ),
    _broken(
        "baskets: the threshold of bought items is that of one item",
        _BASKETS,
        "self.protection.rows * longest",
        "self.protection.rows",
        "private/test_basket_sensitivity",
    ),
    _broken(
        "baskets: all items of a basket are looked at",
        _MINING,
        "self._baskets.limited(longest, self._key)",
        "self._baskets.items",
        "engines/test_transactions",
    ),
    _broken(
        "baskets: the first items of a basket are looked at",
        _BASKET_READING,
        "order = np.lexsort((priorities, baskets))",
        "order = np.arange(len(baskets))",
        "engines/test_transactions",
    ),
    _broken(
        "baskets: all items that occur are bought",
        _BASKETS,
        "items = tuple(sorted(found,",
        "items = tuple(sorted(self._engine.count_items(longest),",
        "private/test_baskets",
    ),
    _broken(
        "baskets: choices are not paid for",
        _BASKETS,
        """(found,) = self._answered(
            [Draw(purpose=purpose, spend=spend)], question, lambda _: [self._mechanisms.chosen(scores(), spend)]
        )
        return found""",
        "return self._mechanisms.chosen(scores(), spend)",
        "private/test_baskets",
    ),
    _broken(
        "baskets: bases are not paid for",
        _BASKETS,
        "self._noised(purposes, spends, question, lambda: self._engine.bins(bases))",
        "self._mechanisms.noised([*zip(self._engine.bins(bases), spends, strict=True)])",
        "private/test_baskets",
    ),
    _broken(
        "baskets: bought items are not paid for",
        _BASKETS,
        '(found,) = self._answered([Draw(purpose="items that occur", spend=spend)], longest, listed)',
        "(found,) = listed(0)",
        "private/test_baskets",
    ),
    _broken(
        "baskets: they are read before the promise is reserved",
        _OPENING,
        "run, book = (_resumed if resume else _started)(journal, facts, ledger)\n    return PrivateBaskets(",
        "counting.prepare()\n    run, book = (_resumed if resume else _started)(journal, facts, ledger)\n"
        "    return PrivateBaskets(",
        "private/test_baskets",
    ),
    _broken(
        "baskets: pure steps may cost more than is planned for all of them",
        _ACCOUNT,
        "return sum(used) <= planned[0]",
        "return True",
        "accounting/test_budget",
    ),
    _broken(
        "baskets: the largest of several steps is compared with the one that is planned",
        _ACCOUNT,
        "return sum(used) <= planned[0]",
        "return max(used, default=0) <= planned[0]",
        "accounting/test_budget",
    ),
    _broken(
        "baskets: Laplace noise may be charged less than it costs",
        _SPENDS,
        "if self.charged is not None and self.charged < self.sensitivity / Fraction(self.scale):",
        "if False:",
        "accounting/test_spends",
    ),
    _broken(
        "baskets: draws may be charged less than they cost",
        _SPENDS,
        "if min(self.pure) < self._sides * self.sensitivity / Fraction(self.scale):",
        "if False:",
        "accounting/test_spends",
    ),
    _broken(
        "baskets: all of a person count",
        _BASKET_READING,
        "counted = kept(basket_keys, most)",
        "counted = kept(basket_keys, len(codes))",
        "engines/test_transactions",
        "private/test_basket_sensitivity",
    ),
    _broken(
        "baskets: the key that chooses them is always the same",
        _OPENING,
        "BasketEngine(source, schema, secrets.token_bytes(16))",
        "BasketEngine(source, schema, bytes(16))",
        "private/test_baskets",
    ),
    _broken(
        "baskets: an item counts as often as a basket holds it",
        _BASKET_READING,
        "used = (codes != _NONE) & ~again & counted[basket]",
        "used = (codes != _NONE) & counted[basket]",
        "engines/test_transactions",
    ),
    _broken(
        "baskets: their number is told where it is private",
        _BASKETS,
        'if self.protection.neighbours != "replace" or self.protection.unit:',
        "if False:",
        "private/test_baskets",
    ),
    _broken(
        "baskets: their number is in the repr",
        _BASKETS,
        'return f"PrivateBaskets({known})"',
        'return f"PrivateBaskets({known}, {self._engine.count()})"',
        "private/test_baskets",
    ),
    _broken(
        "baskets: a release forgets that it protects persons",
        _OPENING,
        "return Protection(neighbours=schema.neighbours, unit=schema.unit.id, rows=schema.unit.rows, record=record)",
        "return Protection(neighbours=schema.neighbours, unit=schema.unit.id, record=record)",
        "private/test_basket_sensitivity",
    ),
    _broken(
        "baskets: a table's rows and baskets are added up",
        _LEDGER,
        "return protection.neighbours, protection.unit, protection.record",
        'return protection.neighbours, protection.unit, ""',
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
