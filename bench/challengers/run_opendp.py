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
# Parts of ρ are added up in floating point, and a sum that exceeds ρ in its last digit is refused. A multiple of this
# step can be divided by 3, 20, the number of columns and that of edges of a tree without rounding.
step = 60 * len(sizes) * (len(sizes) - 1) / 2**44
whole = int(float(rho) / step) * step
context = dp.Context.compositor(
    data=rows.lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=whole)
)
query = context.query(rho=whole).contingency_table(keys=keys, algorithm=algorithm)
query.release().synthesize(rows=len(rows)).write_csv(output)
