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
context = dp.Context.compositor(
    data=rows.lazy(),
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(rho=float(rho)),
)
algorithm = {"mst": dp.mbi.MST, "aim": dp.mbi.AIM}[method]()
query = context.query(rho=float(rho)).contingency_table(
    keys={name: list(range(size)) for name, size in sizes.items()}, algorithm=algorithm
)
synthetic = query.release().synthesize(rows=len(rows))
synthetic.write_csv(output)
