"""The same scores, audited by another library: jax-privacy (``pip install jax-privacy``, in an environment of its own).

    python -m bench.audit --scores scores.npz
    python bench/audit_peers.py scores.npz

For every case, the lower bound of ε at 95 % confidence by jax-privacy's ``CanaryScoreAuditor``, beside what was
charged: Clopper and Pearson's bounds, with the test chosen on half of the runs. The exit code is 1 if more bounds
exceed their claims than chance explains. Its estimate by Gaussian differential privacy is not used: version 2.0.0
reports ε = 0.59 for two samples of 1 000 from the same distribution. This file imports neither DPSyn nor its bench.
"""

from __future__ import annotations

import sys

import numpy as np
from dp_accounting.pld import privacy_loss_distribution
from jax_privacy import auditing
from scipy import stats

SIGNIFICANCE = 0.05
DELTA = 1e-3
"""That of ``dpsyn.audits.cases``."""


def claimed_epsilon(claim: float, is_mu: bool) -> float:
    """The ε at δ that was charged."""
    if not is_mu:
        return claim
    return float(privacy_loss_distribution.from_gaussian_mechanism(1 / claim).get_epsilon_for_delta(DELTA))


def main() -> int:
    """Print a table."""
    scores = np.load(sys.argv[1])
    names = [name.removesuffix("|claim") for name in scores.files if name.endswith("|claim")]
    exceeded = 0
    print("| case | runs a side | ε claimed | lower bound by jax-privacy |\n|---|---:|---:|---:|")
    for name in names:
        claim, is_mu = scores[f"{name}|claim"]
        auditor = auditing.CanaryScoreAuditor(scores[f"{name}|with"], scores[f"{name}|without"])
        bound = auditor.epsilon_clopper_pearson(
            SIGNIFICANCE, delta=DELTA, one_sided=False, threshold_strategy=auditing.Split(seed=0)
        )
        limit = claimed_epsilon(float(claim), bool(is_mu))
        exceeded += bound > limit
        print(f"| {name} | {len(scores[f'{name}|with']):,} | {limit:.3f} | {bound:.3f} |")
    allowed = int(stats.binom.ppf(1 - 1e-4, len(names), SIGNIFICANCE))
    print(f"\n{exceeded} of {len(names)} bounds exceed their claims; at most {allowed} may, by chance.")
    return 1 if exceeded > allowed else 0


if __name__ == "__main__":
    sys.exit(main())
