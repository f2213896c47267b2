"""Which marginals to measure: from released scores to cliques and shares. Post-processing: it costs nothing."""
