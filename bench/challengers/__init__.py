"""Programs that ``bench.challenge`` runs, each in the virtual environment of the system that it calls.

Each takes TABLE.csv DOMAIN.json EPSILON DELTA RHO METHOD OUTPUT.csv: integer codes, the number of values of each
column, (ε, δ), and the ρ of zCDP that keeps it.
"""
