"""``python -m dpsyn`` is the ``dpsyn`` command."""

from dpsyn.cli.main import main

if __name__ == "__main__":
    main()
