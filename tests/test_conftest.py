"""The rules of a test run, each tried on a small run of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py").read_text(encoding="utf-8")
MARKED = """
    import pytest

    @pytest.mark.slow
    def test_slow(): pass

    @pytest.mark.chromium
    def test_page(): pass

    @pytest.mark.java
    def test_spark(): pass

    def test_plain(): pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with the project's conftest, on a machine without a browser and without Java."""
    empty = pytester.mkdir("empty")
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\naddopts = --strict-markers\nmarkers =\n  check\n  slow\n  chromium\n  java\n")
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.delenv("DPSYN_FAIL_ON_SKIP", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # a second saved per run
    return pytester


def test_tests_that_need_an_absent_program_are_skipped_with_the_reason(run: pytest.Pytester) -> None:
    run.makepyfile(MARKED)

    result = run.runpytest("-rs", "--check")

    result.assert_outcomes(passed=1, skipped=2, deselected=1)
    result.stdout.fnmatch_lines_random(
        ["*needs a Chromium browser: there is no chromium on the path", "*needs a Java runtime: there is no java on*"]
    )


def test_tests_that_need_a_present_program_are_run(run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = run.mkdir("programs")
    for name in ("chromium", "java"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    run.makepyfile(MARKED)

    result = run.runpytest("--check")

    result.assert_outcomes(passed=3, deselected=1)


@pytest.mark.parametrize(
    ("options", "passed", "deselected"),
    [([], 1, 1), (["--slow"], 2, 0), (["-m", "slow"], 1, 1), (["-m", "not slow"], 1, 1)],
)
def test_slow_tests_are_deselected_unless_asked_for(
    run: pytest.Pytester, options: list[str], passed: int, deselected: int
) -> None:
    run.makepyfile(
        """
        import pytest

        @pytest.mark.slow
        def test_slow(): pass

        def test_plain(): pass
        """
    )

    result = run.runpytest("-v", *options)

    result.assert_outcomes(passed=passed, deselected=deselected)
    assert ("test_slow PASSED" in result.stdout.str()) == (options in (["--slow"], ["-m", "slow"]))


@pytest.mark.parametrize(
    ("options", "ran"),
    [
        ([], "plain"),
        (["--check"], "plain killed spark"),
        (["--slow"], "plain slow"),
        (["--check", "--slow"], "plain killed spark slow both"),
        (["-m", "check"], "killed spark"),
        (["--check", "-m", "check"], "killed spark"),
        (["-m", "not check"], "plain"),
        (["-m", "java"], "spark"),
        (["-m", "not java"], "plain"),
        (["--check", "-m", "not java"], "plain killed"),
    ],
)
def test_tests_marked_check_and_those_that_need_a_program_are_deselected_unless_asked_for(
    run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: list[str], ran: str
) -> None:
    programs = run.mkdir("programs")
    (programs / "java").touch(0o755)
    monkeypatch.setenv("PATH", str(programs))
    run.makepyfile(
        """
        import pytest

        @pytest.mark.check
        def test_killed(): pass

        @pytest.mark.java
        def test_spark(): pass

        @pytest.mark.slow
        def test_slow(): pass

        @pytest.mark.check
        @pytest.mark.slow
        def test_both(): pass

        def test_plain(): pass
        """
    )

    result = run.runpytest("-v", *options)

    names = ran.split()
    result.assert_outcomes(passed=len(names), deselected=5 - len(names))
    result.stdout.fnmatch_lines_random([f"*::test_{name} PASSED*" for name in names])


def test_what_is_left_out_is_no_skip(run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSYN_FAIL_ON_SKIP", "1")
    run.makepyfile(MARKED)

    result = run.runpytest()

    result.assert_outcomes(passed=1, deselected=3)


@pytest.mark.parametrize(
    "body",
    [
        "import pytest\n\n@pytest.mark.skip(reason='the moon is full')\ndef test_it(): pass",
        "import pytest\n\n@pytest.mark.skipif(True, reason='the moon is full')\ndef test_it(): pass",
        "import pytest\n\ndef test_it(): pytest.skip('the moon is full')",
        "import unittest\n\nclass It(unittest.TestCase):\n    def test_it(self): self.skipTest('the moon is full')",
    ],
)
def test_a_skipped_test_fails_with_its_reason_where_skips_are_forbidden(
    run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setenv("DPSYN_FAIL_ON_SKIP", "1")
    run.makepyfile(body)

    result = run.runpytest()

    outcomes = result.parseoutcomes()
    assert outcomes in ({"failed": 1}, {"errors": 1})
    result.stdout.fnmatch_lines(["*skipped, but DPSYN_FAIL_ON_SKIP=1*the moon is full*"])


def test_a_skipped_module_fails_with_its_reason_where_skips_are_forbidden(
    run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYN_FAIL_ON_SKIP", "1")
    run.makepyfile("import pytest\n\npytest.importorskip('no_such_library')\n\ndef test_it(): pass")

    result = run.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*skipped, but DPSYN_FAIL_ON_SKIP=1*no_such_library*"])


def test_an_absent_program_fails_the_run_where_skips_are_forbidden(
    run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYN_FAIL_ON_SKIP", "1")
    run.makepyfile("import pytest\n\n@pytest.mark.java\ndef test_spark(): pass")

    result = run.runpytest("--check")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*needs a Java runtime*"])


def test_an_expected_failure_is_no_skip(run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSYN_FAIL_ON_SKIP", "1")
    run.makepyfile("import pytest\n\n@pytest.mark.xfail(reason='known')\ndef test_it(): assert False")

    result = run.runpytest()

    result.assert_outcomes(xfailed=1)


def test_a_skip_stays_a_skip_where_they_are_allowed(run: pytest.Pytester) -> None:
    run.makepyfile("import pytest\n\ndef test_it(): pytest.skip('the moon is full')")

    result = run.runpytest()

    result.assert_outcomes(skipped=1)


def test_a_test_that_fails_once_is_run_again_with_new_fixtures_and_listed(run: pytest.Pytester) -> None:
    run.makepyfile(
        """
        import pytest

        RELEASES = []

        @pytest.fixture(scope="module")
        def release():
            RELEASES.append(None)
            return len(RELEASES)

        def test_first(release): assert release == 1

        def test_unlucky(release): assert release == 2, "too much noise"

        def test_wrong(release): assert release == 0
        """
    )

    result = run.runpytest()

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["SECOND RUN *::test_unlucky: passed the second time, after *py:*: AssertionError"])
    assert "SECOND RUN" not in "".join(line for line in result.outlines if "test_first" in line or "test_wrong" in line)
