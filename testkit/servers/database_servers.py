"""MariaDB, MySQL and PostgreSQL, each in a folder and on a port of its own.

MariaDB and PostgreSQL come from Debian's packages. Debian's stable releases have no MySQL, so it is
the program in PARTITA_TEST_MYSQLD, or a `mysqld` that is not MariaDB's. With
PARTITA_TEST_MYSQL_FOR_MARIADB=1, the tests of MariaDB run on MySQL.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest

START_SECONDS_MAX = 180
INSTALL_TRIES = 5
MEMORY_BYTES_MIN = 2 << 30
PASSWORD = "open sesame @/:%"
"""Contains characters that must be escaped in a URL."""


class DatabaseServer(ABC):
    """A private server that runs for the duration of a `with` block.

    `create` a database, `execute` in it, point a migration at its `url`.
    """

    scheme: str
    user: str

    def __init__(self) -> None:
        # pytest's folders have long names, but a socket's path may have only about 100 characters.
        self.folder = Path(tempfile.mkdtemp(prefix=f"partita-{self.scheme}-", dir=roomy_memory()))
        self.port = free_port()
        self.password = PASSWORD
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    @abstractmethod
    def require(cls) -> None:
        """Skips the test if the server is not installed."""

    def __enter__(self) -> Self:
        try:
            self.initialize()
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @abstractmethod
    def initialize(self) -> None:
        """Creates the server's files in the folder."""

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def connect(self, database: str | None = None) -> Any:
        """Returns a connection of the driver, in autocommit mode."""

    @abstractmethod
    def execute(self, script: str, database: str) -> None:
        """Executes statements that are separated by semicolons."""

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        end = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                self.connect().close()
                return
            except Exception:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, user: str | None = None) -> str:
        """Returns the URL of a database, without the password."""
        return f"{self.scheme}://{user or self.user}@127.0.0.1:{self.port}/{database}"

    def create(self, database: str, script: str = "") -> str:
        """Creates a database and returns its URL."""
        connection = self.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(f"DROP DATABASE IF EXISTS {database}")
            cursor.execute(f"CREATE DATABASE {database}")
        finally:
            connection.close()
        if script:
            self.execute(script, database)
        return self.url(database)


class Make(NamedTuple):
    """The commands and options in which MariaDB and MySQL differ."""

    program: Callable[[], str | None]
    absent: str
    install: Callable[[Path], list[str]]
    """Returns the command that creates the server's files in a folder."""
    options: list[str]


def mysqld() -> str | None:
    named = os.environ.get("PARTITA_TEST_MYSQLD") or find("mysqld")
    if named is None:
        return None
    said = subprocess.run([named, "--version"], capture_output=True, text=True).stdout
    return None if "MariaDB" in said else named


MARIADB = Make(
    lambda: find("mariadbd"),
    "mariadbd is not installed; scripts/provision installs it",
    lambda data: [
        str(find("mariadb-install-db")),
        "--no-defaults",
        f"--datadir={data}",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
    ],
    [],
)
MYSQL = Make(
    mysqld,
    "no MySQL; PARTITA_TEST_MYSQLD may name its mysqld",
    lambda data: [str(mysqld()), "--no-defaults", "--initialize-insecure", f"--datadir={data}"],
    ["--mysqlx=OFF", "--skip-log-bin", "--secure-file-priv=NULL"],
)


class MariaDB(DatabaseServer):
    scheme = "mysql"
    user = "partita"
    make = MYSQL if os.environ.get("PARTITA_TEST_MYSQL_FOR_MARIADB") else MARIADB

    @classmethod
    def require(cls) -> None:
        if cls.make.program() is None:
            pytest.skip(cls.make.absent)

    def initialize(self) -> None:
        command = [*self.make.install(self.folder / "data"), *self._user()]
        for left in reversed(range(INSTALL_TRIES)):
            env = {**os.environ, "TMPDIR": str(self.folder)}
            made = subprocess.run(command, capture_output=True, text=True, env=env)
            if made.returncode == 0:
                break
            assert left, made.stdout[-2000:] + made.stderr[-2000:]
            # This was seen after other servers had been killed; a second later it works.
            shutil.rmtree(self.folder / "data", ignore_errors=True)
            time.sleep(1)
        (self.folder / "init.sql").write_text(
            f"CREATE USER {self.user} IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL ON *.* TO {self.user} WITH GRANT OPTION;\n"
        )
        self._first = [f"--init-file={self.folder / 'init.sql'}"]

    def command(self) -> list[str]:
        first, self._first = self._first, []
        return [
            str(self.make.program()),
            "--no-defaults",
            f"--datadir={self.folder / 'data'}",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            # A starting server removes temporary tables of other servers that share a folder.
            f"--tmpdir={self.folder}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--character-set-server=utf8mb4",
            "--performance-schema",
            "--performance-schema-consumer-statements-digest=ON",
            "--performance-schema-instrument=statement/%=ON",
            *self.make.options,
            *self._user(),
            *first,
        ]

    def _user(self) -> list[str]:
        return ["--user=root"] if os.geteuid() == 0 else []

    def connect(self, database: str | None = None) -> Any:
        import pymysql
        from pymysql.constants import CLIENT

        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=self.user,
            password=self.password,
            database=database,
            charset="utf8mb4",
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
        )

    def execute(self, script: str, database: str) -> None:
        connection = self.connect(database)
        try:
            cursor = connection.cursor()
            cursor.execute(script)
            while cursor.nextset():
                pass
        finally:
            connection.close()


class MySQL(MariaDB):
    make = MYSQL


class PostgreSQL(DatabaseServer):
    scheme = "postgresql"
    user = "postgres"

    @classmethod
    def require(cls) -> None:
        if find("postgres") is None:
            pytest.skip("postgres is not installed; scripts/provision installs it")

    def initialize(self) -> None:
        secret = self.folder / "secret"
        secret.write_text(self.password)
        if os.geteuid() == 0:
            for path in (self.folder, secret):
                shutil.chown(path, "postgres", "postgres")
        self._run(
            [
                str(find("initdb")),
                f"--pgdata={self.folder / 'data'}",
                f"--username={self.user}",
                f"--pwfile={secret}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            ]
        )

    def command(self) -> list[str]:
        settings = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "shared_preload_libraries": "pg_stat_statements",
            "fsync": "off",
            "max_connections": "30",
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return self._as_user([str(find("postgres")), "-D", str(self.folder / "data"), *options])

    def _run(self, command: list[str]) -> None:
        subprocess.run(self._as_user(command), check=True, capture_output=True, cwd=self.folder)

    def _as_user(self, command: list[str]) -> list[str]:
        """Runs a command as an unprivileged user, because PostgreSQL refuses to run as root."""
        if os.geteuid() != 0:
            return command
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]

    def connect(self, database: str | None = None) -> Any:
        import psycopg

        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=self.user,
            password=self.password,
            dbname=database or "postgres",
            autocommit=True,
        )

    def execute(self, script: str, database: str) -> None:
        connection = self.connect(database)
        try:
            connection.execute(script)
        finally:
            connection.close()


def find(program: str) -> str | None:
    """Finds a program, also in the folders that Debian does not put on a user's PATH."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", *map(str, versions)])
    return shutil.which(program, path=path)


def roomy_memory() -> Path | None:
    """Returns a folder in memory if there is a large enough one; in containers it may be tiny."""
    memory = Path("/dev/shm")
    is_roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= MEMORY_BYTES_MIN
    return memory if is_roomy else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
