"""DPSyn: synthetic tables with a differential-privacy guarantee that can be checked."""

__version__ = "0.1.0.dev0"
