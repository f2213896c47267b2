"""MST and AIM of smartnoise-synth, on codes: the preprocessor has nothing to learn, so it gets no budget."""

import json
import sys
from pathlib import Path

import pandas
from snsynth import Synthesizer
from snsynth.transform import LabelTransformer, TableTransformer

table, domain, epsilon, delta, rho, method, output = sys.argv[1:]
sizes = json.loads(Path(domain).read_text())
rows = pandas.read_csv(table)[list(sizes)].astype(int)
labels = [LabelTransformer(nullable=False) for _ in sizes]
for transformer, size in zip(labels, sizes.values(), strict=True):
    transformer.fit(list(range(size)))
transformer = TableTransformer(labels)
synthesizer = Synthesizer.create(method, epsilon=float(epsilon), delta=float(delta))
synthesizer.fit(rows, transformer=transformer, preprocessor_eps=0.0)
synthesizer.sample(len(rows)).to_csv(output, index=False)
