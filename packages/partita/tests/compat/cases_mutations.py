"""Unusual PartiQL: statements made from valid ones by mutation.

DynamoDB Local answers a few of them by evaluating comparisons inside of comparisons, which Partita
refuses: those are left out.
"""

from __future__ import annotations

import re
from random import Random

from .cases_partiql import SETUP, run
from .notation import Case, S, Step, case, given

ROOTS = (
    "SELECT * FROM Things WHERE pk = 'a' AND n > 1",
    'SELECT n, m.x, l[0] FROM "Paged"."byCity" WHERE city = \'Rome\' AND sk BETWEEN 1 AND 3 '
    "OR s IS NOT MISSING",
    "SELECT pk, sk FROM Paged WHERE pk IN ['a', 'b'] AND NOT contains(city, 'x')",
    "UPDATE Things SET n = n + 1, s = 'x' REMOVE z WHERE pk = 'a' AND n <> 5 RETURNING ALL NEW *",
    "UPDATE Things SET l = list_append(l, [1, 'b']) SET ss = set_add(ss, <<'q'>>) WHERE pk = 'a'",
    "DELETE FROM Things WHERE pk = 'nobody' AND n IS MISSING RETURNING ALL OLD *",
    "INSERT INTO Things VALUE {'pk': 'a', 'm': {'x': [1, true, null], 'y': <<1, 2>>}}",
    "SELECT * FROM Things WHERE size(l) >= 1 AND begins_with(s, 'x') AND m['x'] = -1.5e0",
)
_SIGNS = "( ) [ ] { } << >> , . : ; * = <> < + - || @ ? ' \" # é x 's' 1 1.5 true foo(1) a.b"
_KEYWORDS = """
    AND OR NOT IN IS MISSING NULL BETWEEN LIKE SELECT FROM WHERE SET REMOVE VALUE INTO INSERT
    DELETE UPDATE RETURNING ALL OLD NEW ORDER BY DESC LIMIT GROUP AS CASE END DISTINCT size exists
    count list `1` -- /* */ JOIN PIVOT HAVING
"""
WORDS = (*_SIGNS.split(), *_KEYWORDS.split())
_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|<<|>>|<>|<=|>=|\w+(?:\.\d+e\d+)?|\S")
MUTANTS_EACH = 40


def mutated(random: Random, statement: str) -> str:
    """The statement with some tokens left out, put in, doubled, replaced or moved."""
    tokens: list[str] = _TOKEN.findall(statement)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        place = random.randrange(len(tokens))
        kind = random.randrange(5)
        if kind == 0 and len(tokens) > 1:
            del tokens[place]
        elif kind == 1:
            tokens.insert(place, random.choice(WORDS))
        elif kind == 2:
            tokens[place] = random.choice(WORDS)
        elif kind == 3:
            tokens.insert(place, tokens[place])
        else:
            other = random.randrange(len(tokens))
            tokens[place], tokens[other] = tokens[other], tokens[place]
    return " ".join(tokens)


def mutants(seed: int, statement: str) -> list[Step]:
    random = Random(seed)
    found = dict.fromkeys(mutated(random, statement) for _ in range(MUTANTS_EACH))
    return [run(one, *[S("a")] * one.count("?")) for one in found if one not in LEFT_OUT]


LEFT_OUT = frozenset(
    (
        'SELECT n , m . x , l [ 0 ] FROM "Paged" . "byCity" WHERE city = \'Rome\' BETWEEN sk AND 1 '
        "AND 3 OR s IS NOT MISSING",
    )
)

CASES: list[Case] = [
    *given(*SETUP)(
        *(case(f"what is made of {root}", *mutants(seed, root)) for seed, root in enumerate(ROOTS))
    )
]
