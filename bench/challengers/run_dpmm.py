"""MST and AIM of dpmm, on codes: nothing is binned, so that its whole budget goes into the model."""

import json
import sys
from pathlib import Path

import pandas
from dpmm.pipelines import AIMPipeline, MSTPipeline

table, domain, epsilon, delta, rho, method, output = sys.argv[1:]
sizes = json.loads(Path(domain).read_text())
rows = pandas.read_csv(table)[list(sizes)]
pipeline = {"mst": MSTPipeline, "aim": AIMPipeline}[method](
    epsilon=float(epsilon), delta=float(delta), proc_epsilon=None, disable_processing=True, n_jobs=1
)
pipeline.fit(rows, domain=sizes)
pipeline.generate(len(rows)).to_csv(output, index=False)
