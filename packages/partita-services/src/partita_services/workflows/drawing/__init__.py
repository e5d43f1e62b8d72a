"""Drawings of machines: as text for a terminal, as SVG, and as Mermaid for documents."""

from __future__ import annotations

from partita.errors import PartitaError
from partita_services.workflows.drawing.box_drawing import text
from partita_services.workflows.drawing.mermaid import mermaid
from partita_services.workflows.drawing.svg import svg
from partita_services.workflows.language import StateMachine


def _page(machine: StateMachine) -> str:
    return f"```mermaid\n{mermaid(machine)}```\n"


_FORMATS = {".svg": svg, ".mmd": mermaid, ".md": _page}


def for_file(machine: StateMachine, suffix: str) -> str:
    """A drawing in the format of the file's suffix."""
    draw = _FORMATS.get(suffix)
    if draw is None:
        raise PartitaError(
            f"The file of a drawing must end in {', '.join(_FORMATS)}, not {suffix!r}."
        )
    return draw(machine)


__all__ = ["for_file", "mermaid", "svg", "text"]
