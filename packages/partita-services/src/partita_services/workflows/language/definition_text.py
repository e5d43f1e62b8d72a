"""The text of a definition before it is parsed: comments and substitutions."""

from __future__ import annotations

import re
from collections.abc import Mapping

_COMMENT = re.compile(
    r"""
    "(?:[^"\\\n]|\\.)*"     # a string, which may look like a comment inside
    | //[^\n]* | \#[^\n]*   # to the end of the line
    | /\*.*?\*/             # over lines
    """,
    re.VERBOSE | re.DOTALL,
)
_SUBSTITUTION = re.compile(r"\$\{([A-Za-z0-9_:.-]+)\}")


def strip_comments(text: str) -> str:
    """The text without comments; everything else keeps its line and column for error messages."""

    def blank(match: re.Match[str]) -> str:
        text = match[0]
        return text if text.startswith('"') else re.sub(r"[^\n]", " ", text)

    return _COMMENT.sub(blank, text)


def substitute(text: str, values: Mapping[str, str]) -> str:
    """The text with each `${Name}` replaced, like CloudFormation's DefinitionSubstitutions."""
    return _SUBSTITUTION.sub(lambda match: values.get(match[1], match[0]), text)
