"""Vega, the plotting library of the HTML reports: one script that needs nothing from elsewhere.

It comes from ``vl-convert-python``, which carries Vega inside and bundles it without a network.
"""

from __future__ import annotations

import functools

from dpsyn.errors import MissingExtraError

EXTRA = "report"

_EXPORT = "window.vegaEmbed = vegaEmbed;"
"""All that the page uses."""


def require_vega() -> None:
    """Refuse to go on without the library, before work is done for a report."""
    try:
        import vl_convert  # noqa: F401 -- whether it is there
    except ImportError:
        raise MissingExtraError("vl-convert-python", EXTRA, "an HTML report") from None


@functools.cache
def javascript() -> str:
    """Vega as one script of about 900 kB; making it takes a second or two."""
    require_vega()
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(_EXPORT)
    return bundle
