"""Makes games.db beside this file: games, players, and who plays what. The same every time."""

from __future__ import annotations

import random
import sqlite3
from datetime import date, timedelta
from pathlib import Path

HERE = Path(__file__).parent
GAMES = 50
PLAYERS = 2_000
GAMES_OF_A_PLAYER = 10
TYPES = ("Sports", "Shooters", "Puzzles", "Strategy", "Racing")
FIRST_DAY = date(2020, 1, 1)


def generate(path: Path = HERE / "games.db", seed: int = 1) -> None:
    chance = random.Random(seed)
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.executescript((HERE / "schema.sql").read_text())
        database.executemany(
            "INSERT INTO Games VALUES (?, ?, ?)",
            [(f"Game{n}", f"Game number {n}", chance.choice(TYPES)) for n in range(1, GAMES + 1)],
        )
        database.executemany(
            "INSERT INTO Players VALUES (?, ?)",
            [(f"Player{n}", f"Player number {n}") for n in range(1, PLAYERS + 1)],
        )
        database.executemany("INSERT INTO PlayersGamesItems VALUES (?, ?, ?, ?)", _played(chance))
    database.close()


def _played(chance: random.Random) -> list[tuple[str, str, str, int]]:
    rows = []
    for player in range(1, PLAYERS + 1):
        count = chance.randint(1, 2 * GAMES_OF_A_PLAYER - 1)
        for game in chance.sample(range(1, GAMES + 1), count):
            day = FIRST_DAY + timedelta(days=chance.randrange(1_000))
            row = (f"Game{game}", f"Player{player}", day.isoformat(), chance.randrange(1_000))
            rows.append(row)
    return rows


if __name__ == "__main__":
    generate()
