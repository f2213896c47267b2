"""Synopsis files: a zip of a manifest and arrays, written reproducibly and validated when read."""
