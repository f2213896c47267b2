"""What people read: HTML reports, plots, and text for the command line."""
