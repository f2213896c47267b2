"""Make released tables agree with each other, and make them non-negative. Post-processing: it costs nothing."""
