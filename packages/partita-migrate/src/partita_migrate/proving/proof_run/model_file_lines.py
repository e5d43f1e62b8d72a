"""Finds the line of a model file that a difference comes from."""

from __future__ import annotations

import json

from msgspec.structs import replace

from partita_migrate.proving.proof_run.proof_results import KeyProblem
from partita_migrate.workspace.migration_folder import Folder


class ModelLines:
    """The lines of one model file."""

    def __init__(self, folder: Folder, name: str) -> None:
        self.name = name
        path = folder.path / name
        self.lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []

    def of_pattern(self, pattern: str) -> str:
        """Returns the line with the key of a pattern's request."""
        header = f"pattern = {json.dumps(pattern, ensure_ascii=False)}"
        for number, line in enumerate(self.lines, 1):
            if line.strip() == header:
                key = self._after(number, "key = ")
                return self._shown(key or number)
        return self.name

    def of_key(self, problem: KeyProblem) -> KeyProblem:
        """Adds the line that defines a key's attribute to a problem."""
        if problem.place.startswith("access "):
            return replace(
                problem, line=self.of_pattern(problem.place[len("access ") :].strip("'"))
            )
        _, _, rest = problem.place.partition(", ")
        entity, _, key = rest.partition(", ")
        start = self._line(f'name = "{entity.split(" and ")[0]}"')
        attribute = key.partition(" of ")[0]
        line = self._after(start, f'{{ name = "{attribute}"') if attribute else start
        return replace(problem, line=self._shown(line or start)) if start else problem

    def _line(self, text: str) -> int:
        entities = [n for n, line in enumerate(self.lines) if line == "[[tables.entities]]"]
        for number in entities:
            if number + 1 < len(self.lines) and self.lines[number + 1] == text:
                return number + 2
        return 0

    def _after(self, start: int, text: str) -> int:
        """Returns the first line after `start` that begins with a text, within the same block; 0
        without one."""
        for number, line in enumerate(self.lines[start:], start + 1):
            if line.startswith("[["):
                return 0
            if line.strip().startswith(text):
                return number
        return 0

    def _shown(self, number: int) -> str:
        text = self.lines[number - 1].strip()
        following = [line.strip() for line in self.lines[number : number + 3]]
        if text == "key = [":
            text = " ".join(line.rstrip(",") for line in following if line.startswith("{"))
        return f"{self.name}, line {number}: {text[:200]}"
