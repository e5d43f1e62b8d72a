"""The address of a source, and its password.

The password comes from the environment, a file, a prompt, or the URL itself. It is passed to the
driver and stored nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from partita.errors import PartitaError
from partita_migrate.workspace.migration_folder import SETTINGS, Folder, SourceSettings

PASSWORD_ENV = "PARTITA_SOURCE_PASSWORD"
"""The variable that is read if `[source]` names no other one."""

DRIVERS = {
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "sqlite": "sqlite+pysqlite",
}
PASSWORD_PARAMETERS = ("password", "passwd")
"""Parameters of a URL's query in which libpq and some drivers accept a password."""


@dataclass(frozen=True)
class SourceAddress:
    url: URL
    """The URL without the password."""
    password: str | None = field(default=None, repr=False)

    @property
    def is_file(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    def __str__(self) -> str:
        """Returns the address for people, without driver, query and password."""
        plain = self.url.set(drivername=self.url.get_backend_name(), query={})
        return plain.render_as_string(hide_password=True)

    def scrub(self, text: str) -> str:
        """Returns a driver's text on one line, with the password replaced if it occurs."""
        line = " ".join(text.split())
        return line.replace(self.password, "***") if self.password else line


def address_of(folder: Folder, environment: Mapping[str, str] = os.environ) -> SourceAddress:
    settings = folder.source
    where = f"{folder.path / SETTINGS}, [source]"
    url = _parse(_url_text(settings, where, environment), where)
    in_url = url.password or next(
        (str(url.query[name]) for name in PASSWORD_PARAMETERS if name in url.query), None
    )
    # URL.set ignores None, so that it could not remove an empty password.
    plain = URL.create(
        url.drivername,
        username=url.username,
        host=url.host,
        port=url.port,
        database=url.database,
        query=url.difference_update_query(PASSWORD_PARAMETERS).query,
    )
    if plain.get_backend_name() == "sqlite":
        return SourceAddress(_beside(folder, plain, where))
    return SourceAddress(plain, in_url or _password(folder, settings, where, environment))


def _url_text(settings: SourceSettings, where: str, environment: Mapping[str, str]) -> str:
    if settings.url_env:
        if not environment.get(settings.url_env):
            raise PartitaError(
                f"{where} names the environment variable {settings.url_env} for its url;"
                " it is not set."
            )
        return environment[settings.url_env]
    if not settings.url:
        raise PartitaError(f'{where} needs a url, such as url = "mysql://user@host/database".')
    return settings.url


def _parse(text: str, where: str) -> URL:
    """Parses a URL. Error messages do not repeat it, because it can contain a password."""
    try:
        url = make_url(text)
        family = url.drivername.partition("+")[0]
    except (ArgumentError, ValueError) as error:
        raise PartitaError(
            f"{where}: url is not a database URL; expected for example mysql://user@host/database,"
            " postgresql://user@host/database or sqlite:///file."
        ) from error
    if family not in DRIVERS:
        raise PartitaError(
            f"{where}: url begins with {family}://; expected mysql, mariadb, postgresql or sqlite."
        )
    # A raw @ in the password ends it early, and the rest of the password becomes the host.
    if url.host and "@" in url.host:
        raise PartitaError(f"{where}: url has more than one @; write an @ in the password as %40.")
    if not url.database:
        raise PartitaError(f"{where}: url has no database; write it after the last /.")
    return url.set(drivername=DRIVERS[family])


def _beside(folder: Folder, url: URL, where: str) -> URL:
    """Finds a relative file in the migration folder, or else in the working directory."""
    name = Path(url.database or "").expanduser()
    candidates = [name] if name.is_absolute() else [folder.path / name, Path.cwd() / name]
    existing = next((path for path in candidates if path.is_file()), None)
    if existing is None:
        raise PartitaError(f"{where}: the file {name} does not exist.")
    return url.set(database=str(existing.resolve()))


def _password(
    folder: Folder, settings: SourceSettings, where: str, environment: Mapping[str, str]
) -> str | None:
    if settings.password_env:
        if settings.password_env not in environment:
            raise PartitaError(
                f"{where} names the environment variable {settings.password_env} for its"
                " password; it is not set."
            )
        return environment[settings.password_env]
    if settings.password_file:
        path = folder.path / Path(settings.password_file).expanduser()
        try:
            return path.read_text().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise PartitaError(
                f"{where} names the file {path} for its password; it cannot be read."
            ) from error
    return environment.get(PASSWORD_ENV)
