"""User agents: which are bots by their name, and how many hits each has."""

from __future__ import annotations

import re
from collections.abc import Iterable

AGENTS_MAX = 10_000
"""Agents beyond this number share one entry, so that clients cannot fill the memory with names."""
MAYBE_BOTS = (
    "bot",
    "crawl",
    "curl/",
    "headless",
    "http-client",
    "httpclient",
    "libwww",
    "lighthouse",
    "okhttp",
    "phantomjs",
    "python-requests",
    "python-urllib",
    "aiohttp",
    "go-http",
    "java/",
    "scrapy",
    "selenium",
    "slurp",
    "spider",
    "wget",
)
"""Words in the names of crawlers and HTTP libraries."""
NOT_BOTS = ("cubot",)
"""Cubot makes phones, and its name is in the user agents of their browsers."""


class UserAgent:
    """A user agent and its hits, of which older ones count less."""

    __slots__ = ("hits", "is_bot", "name")

    def __init__(self, name: str, is_bot: bool) -> None:
        self.name = name
        self.is_bot = is_bot
        self.hits = 0.0


class UserAgents:
    def __init__(self, more_bots: Iterable[str] = ()) -> None:
        parts = [re.escape(part.lower()) for part in (*MAYBE_BOTS, *more_bots)]
        self._bots = re.compile("|".join(parts))
        self._agents: dict[str, UserAgent] = {}
        self._others = UserAgent("other", False)
        self.get = self._agents.get

    def add(self, name: str) -> UserAgent:
        """Returns a new entry for a name that `get` does not find."""
        if self._is_bot(name):
            agent = UserAgent(name, True)
        elif len(self._agents) >= AGENTS_MAX:
            return self._others
        else:
            agent = UserAgent(name, False)
        if len(self._agents) < AGENTS_MAX:
            self._agents[name] = agent
        return agent

    def _is_bot(self, name: str) -> bool:
        text = name.lower()
        for word in NOT_BOTS:
            text = text.replace(word, "")
        return self._bots.search(text) is not None

    def total(self) -> float:
        """Returns the hits of all agents that are not bots."""
        return self._others.hits + sum(agent.hits for agent in self._agents.values())

    def decay(self) -> None:
        """Lets older hits count less, and forgets names that do not occur any more."""
        for agent in list(self._agents.values()):
            agent.hits *= 0.98
            if agent.hits < 0.01:
                del self._agents[agent.name]
        self._others.hits *= 0.98
