"""The console of a server, at /console. Its modules are imported with the first request for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from partita.server.http.host_header import AllowedHosts
from partita.server.http.http_messages import Handle, HttpRequest, Reply

if TYPE_CHECKING:
    from partita.console.console_service import Console
    from partita.console.migration_runs import MigrationFolders


class ConsoleSite:
    def __init__(
        self,
        serve_request: Handle,
        find_url: Callable[[], str],
        mode: str,
        hosts: AllowedHosts,
        folders: Sequence[Path] = (),
        *,
        signs_in: bool,
        certificate: str = "",
    ) -> None:
        """`folders` are folders of `partita migrate` whose moves go to this server."""
        self._serve_request = serve_request
        self._find_url = find_url
        self._mode = mode
        self._hosts = hosts
        self._folders = folders
        self._signs_in = signs_in
        self._certificate = certificate
        self._loaded: Console | None = None
        self._moves: MigrationFolders | None = None

    def handle(self, request: HttpRequest, reply: Reply) -> None:
        if self._loaded is None:
            self._loaded = self._load()
        self._loaded.handle(request, reply)

    def knows(self, request: HttpRequest) -> bool:
        """True when a signed-in user sent the request."""
        return self._loaded is not None and self._loaded.knows(request)

    def _load(self) -> Console:
        from partita.console.console_endpoints import OwnServer
        from partita.console.console_service import Console
        from partita.console.migration_runs import MigrationFolders, MigrationTarget

        server = OwnServer(self._serve_request, self._find_url)
        self._moves = MigrationFolders(
            self._folders, MigrationTarget(self._find_url(), self._certificate)
        )
        signing = server if self._signs_in else None
        return Console(server, self._mode, self._hosts, signing=signing, moves=self._moves)

    async def close(self) -> None:
        if self._moves is not None:
            await self._moves.close()
