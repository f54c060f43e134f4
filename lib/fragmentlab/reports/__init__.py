"""Notebooks as reports: what their cells show, and how they are run and rendered.

How a notebook of this repository is made
- The file is ``notebooks/NN-what-it-asks.ipynb``. The first Markdown cell is ``# Title``, a blank line, and
  the question in one paragraph (both head the page); ``## Headings`` become the page's sections.
- One code cell is tagged ``parameters`` and holds only lines ``name: type = default  # help`` (``str``,
  ``int``, ``float``, ``bool``). Start the help with ``[shown]`` if a report may print any text given for it.
- The next code cell checks them: ``p = check_parameters("NN-what-it-asks", globals())``; later cells use
  ``p.name``.
- Cells call one function that returns a ``Table``, ``Figure``, ``Callout`` or ``Lists`` and leave it as their
  value. Everything these hold is escaped. What a library writes to standard error is dropped.
- A result that must hold raises ``ResultDoesNotHold("why")``: the run fails and the page says why. Messages
  of other exceptions are never shown, apart from ``InputError``.
- The last code cell is ``conclude(shows=[...], not_shown=[...])``. Without it the notebook counts as failed.
- No outputs are committed, except of cells tagged ``nbval-check-output`` (``fragmentlab maintain
  notebooks`` writes them).
"""

from fragmentlab.reports.frame.parameters import check_parameters
from fragmentlab.reports.show.figures import Figure
from fragmentlab.reports.show.prose import Callout, Lists, ResultDoesNotHold, conclude
from fragmentlab.reports.show.tables import Badge, Table

__all__ = [
    "Badge",
    "Callout",
    "Figure",
    "Lists",
    "ResultDoesNotHold",
    "Table",
    "check_parameters",
    "conclude",
]
