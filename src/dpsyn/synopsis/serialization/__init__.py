"""Synopsis files: a zip of a manifest and arrays, written alike every time and read with distrust."""
