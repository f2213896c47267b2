"""From tables of counts to records that match them. Post-processing: it costs nothing."""
