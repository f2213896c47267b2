"""MST and AIM of OpenDP, over its extra ``mbi``."""

import json
import sys
from pathlib import Path

import opendp.prelude as dp
import polars

dp.enable_features("contrib")
table, domain, epsilon, delta, rho, method, output = sys.argv[1:]
sizes = json.loads(Path(domain).read_text())
rows = polars.read_csv(table).select([polars.col(name).cast(polars.Int64) for name in sizes])
keys = {name: list(range(size)) for name, size in sizes.items()}
algorithm = {"mst": dp.mbi.MST, "aim": dp.mbi.AIM}[method]()
for attempt in range(8):
    rho_used = float(rho) * (1 - 1e-5 * attempt)
    context = dp.Context.compositor(
        data=rows.lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=float(rho))
    )
    try:
        release = context.query(rho=rho_used).contingency_table(keys=keys, algorithm=algorithm).release()
        break
    except Exception as error:  # parts of ρ are added up in floating point: the sum may exceed ρ in its last digit
        if "insufficient budget" not in str(error) or attempt == 7:
            raise
release.synthesize(rows=len(rows)).write_csv(output)
