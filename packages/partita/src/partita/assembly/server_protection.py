"""Protects a server: encryption at rest, users and policies, TLS, the audit log.

Modules of `server/security` are imported inside functions, since most servers start without them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from partita.assembly.serve_options import ServeOptions
from partita.assembly.service_registry import companion_services, forwarded_rights, rights
from partita.database.storage.data_folder.keyring_access import open_keyring
from partita.errors import PartitaError
from partita.foundation.clock import system_clock
from partita.server.companions.companion_services import AnsweredService
from partita.server.dispatch import Dispatcher
from partita.server.http.http_messages import CheckHead, Handle
from partita.server.security.resource_denials import ResourceDenials

if TYPE_CHECKING:
    from ssl import SSLContext

    from partita.assembly.database_engines import ServedDatabase
    from partita.assembly.rollback_protection import AuditRollbackNotes
    from partita.database.execution.embedded_database import EmbeddedDatabase
    from partita.database.recovery.s3.object_buckets import ObjectBucket
    from partita.database.storage.sealing.encrypted_folders import KeyWatch
    from partita.database.storage.sealing.keyring import Keyring
    from partita.database.storage.sealing.master_keys import KeySource
    from partita.server.security.administration.administration_api import Administration
    from partita.server.security.audit.audit_log import AuditLog
    from partita.server.security.audit.audit_recorder import AuditRecorder
    from partita.server.security.authorization_gate import Gate
    from partita.server.security.identities.access_control import AccessControl
    from partita.server.security.identities.callers import Caller
    from partita.server.security.tls import Tls

AUDIT = "audit"
"""The folder of the audit log, inside the data folder."""
REFUSED_USERS = "RefuseUsers"
"""The audit event for a users file that was refused."""
PASSWORD_VARIABLES = ("PGPASSWORD", "PGPASSFILE")
"""Environment variables from which libpq takes a password."""


class ServerProtection:
    """The protection that a server's options ask for. Without any, all its parts are None."""

    def __init__(self, options: ServeOptions) -> None:
        if options.storage is not None and options.encryption_key is not None:
            raise PartitaError(
                "Partita does not encrypt data in PostgreSQL: leave --encryption-key out and "
                "encrypt the disk of the database."
            )
        self._options = options
        self.keyring = open_keyring(options.data, options.encryption_key)
        if options.data is not None and self.keyring is not None and self.keyring.is_new:
            _begin(options.data, self.keyring)
        self.access: AccessControl | None = None
        self._audit_notes: AuditRollbackNotes | None = None
        self.companion_keys: dict[str, tuple[str, str]] = {}
        if options.auth:
            self.access, self.companion_keys = _access(options, self.keyring)
        self._tls = _tls(options)
        self.recorder: AuditRecorder | None = None

    def begin_keyring(self) -> None:
        """Put a new key into effect and seal the users file; needs the lock of the folder."""
        keyring, data = self.keyring, self._options.data
        if keyring is not None and data is not None:
            from partita.server.security.identities.access_file import begin_sealing

            keyring.begin()
            begin_sealing(data, keyring)

    @property
    def scheme(self) -> str:
        return "http" if self._tls is None else "https"

    @property
    def certificates(self) -> tuple[str, str]:
        """The certificate that companions and peers trust, and the one that they present."""
        if self._tls is None:
            return "", ""
        return str(self._tls.files.certificate.absolute()), self._tls.companion_certificate

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """Environment variables with secrets, besides Partita's own, that children must not get."""
        key = self._options.encryption_key
        named = (key.name,) if key is not None and key.kind == "env" else ()
        return named if self._options.storage is None else (*named, *PASSWORD_VARIABLES)

    @property
    def tls_context(self) -> SSLContext | None:
        return None if self._tls is None else self._tls.context

    def dispatcher(self) -> type[Dispatcher]:
        if self.access is None:
            return Dispatcher
        from partita.server.security.authorization_gate import Gate

        return Gate

    def administration(self) -> dict[bytes, Administration]:
        """Returns the API for users and the audit log; empty without --auth."""
        if self.access is None:
            return {}
        from partita.server.security.administration.administration_api import TARGET, Administration

        return {TARGET: Administration(self.access, self._audit_folder)}

    def guard(self, dispatcher: Dispatcher, served: ServedDatabase) -> Handle:
        """Returns the handler of all requests: the gate's with --auth, else the dispatcher's."""
        if self.access is None:
            dispatcher.policies = ResourceDenials(served.database.service, rights)
            return dispatcher.handle
        from partita.server.security.abuse_limits import AbuseLimits

        access, log = self.access, self._settle(self.access, served.in_folder)
        recorder = self.recorder = None if log is None else self._recorder(log)

        def record_refusal(refusal: str) -> None:
            if recorder is not None:
                recorder.record_own("iam", REFUSED_USERS, {"reason": refusal})

        def seal_again() -> None:
            if log is not None:
                log.save_head()
            access.seal_again()

        gate = cast("Gate", dispatcher)
        gate.protect(
            served.database.service,
            access.callers,
            rights(),
            forwarded_rights(),
            recorder,
            AbuseLimits(self._options.limits),
        )
        access.watch(gate.admit_callers, record_refusal, seal_again)
        return gate.guard

    def check_head(self, dispatcher: Dispatcher) -> CheckHead | None:
        """Returns the check of a request's head, which runs before the body is read."""
        return None if self.access is None else cast("Gate", dispatcher).check_head

    def _settle(self, access: AccessControl, database: EmbeddedDatabase | None) -> AuditLog | None:
        """Open the audit log and accept the users, both checked against the rollback notes."""
        from partita.assembly.rollback_protection import AuditRollbackNotes, RollbackNotes
        from partita.server.security.audit.audit_log import AuditLog

        folder = self._audit_folder
        notes = None if database is None else RollbackNotes(database)
        name = "" if self._options.audit is None else str(self._options.audit.absolute())
        if notes is not None:
            access.check(notes.accepted())
        log: AuditLog | None = None
        if folder is not None:
            noted = None if notes is None else notes.audited(name)
            # Opened before `begin` drops old secrets, because its head may be sealed under one.
            log = AuditLog(folder, keyring=self.keyring, noted=noted)
        access.begin(None if notes is None else notes.note_accepted)
        if notes is not None and log is not None:
            self._audit_notes = AuditRollbackNotes(log, notes, name)
        return log

    def _recorder(self, log: AuditLog) -> AuditRecorder:
        from partita.server.security.audit.audit_log import DAMAGED
        from partita.server.security.audit.audit_recorder import AuditRecorder

        call_later = asyncio.get_running_loop().call_later
        recorder = AuditRecorder(log, self._options.audit_data, call_later=call_later)
        for damage in log.damages:
            recorder.record_own("partita", DAMAGED, {"reason": damage})
        return recorder

    @property
    def _audit_folder(self) -> Path | None:
        if self._options.audit is not None:
            return self._options.audit
        return None if self._options.data is None else self._options.data / AUDIT

    def watch(self) -> None:
        """Begin to reload certificates when their files change."""
        if self._tls is not None:
            self._tls.watch()

    def stop(self) -> None:
        if self.access is not None:
            self.access.stop()
        if self._audit_notes is not None:
            self._audit_notes.stop()
        if self._tls is not None:
            self._tls.stop()

    def close(self) -> None:
        """Close the audit log; called after the last request has been answered."""
        if self.recorder is not None:
            self.recorder.close()


def policy_problem(document: str, arn: str) -> str:
    from partita.server.security.identities.access_control import policy_problem

    return policy_problem(document, arn)


# Users


def _access(
    options: ServeOptions, keyring: Keyring | None
) -> tuple[AccessControl, dict[str, tuple[str, str]]]:
    """Returns the directory of users, and a key for each service that a companion answers for."""
    from partita.server.security.identities.access_control import AccessControl
    from partita.server.security.identities.user_directory import new_key

    answered = {
        service.name: service
        for companion in companion_services()
        for service in companion.services
    }
    keys = {name: new_key(system_clock()) for name in answered}
    # From here on, new files are readable only by the owner of the process.
    os.umask(0o077)
    companion_users = {
        key.id: (key.secret, _service_caller(answered[name], key.id)) for name, key in keys.items()
    }
    access = AccessControl(options.data, options.users, others=companion_users, keyring=keyring)
    if access.is_empty:
        raise PartitaError(f"Nobody could sign a request: {access.how_to_begin()}.")
    return access, {name: (key.id, key.secret) for name, key in keys.items()}


def _service_caller(service: AnsweredService, access_key_id: str) -> Caller:
    """Returns the identity of a companion: it may use its own tables and call its own actions.

    For everything that users have created, it assumes the role that they have given.
    """
    from partita.server.security.identities.callers import service_caller

    arns = [f"arn:aws:dynamodb:us-east-1:123456789012:table/{table}" for table in service.tables]
    own = {"Effect": "Allow", "Action": "dynamodb:*"}
    own_tables = [{**own, "Resource": [*arns, *(f"{arn}/index/*" for arn in arns)]}] if arns else []
    document = {
        "Version": "2012-10-17",
        "Statement": [
            *own_tables,
            {"Effect": "Allow", "Action": list(service.actions), "Resource": "*"},
        ],
    }
    return service_caller(f"{service.name}.amazonaws.com", access_key_id, document)


def _tls(options: ServeOptions) -> Tls | None:
    if options.tls is None:
        return None
    from partita.server.security.tls import Tls

    return Tls(options.tls)


# At rest


def _begin(folder: Path, keyring: Keyring) -> None:
    from partita.database.storage.sealing.encrypted_folders import begin_encryption

    begin_encryption(folder, keyring)


def sealed_buckets(source: KeySource | None) -> Callable[[ObjectBucket], ObjectBucket] | None:
    """Returns a function that wraps a bucket so that its objects are encrypted; None without a
    key."""
    if source is None:
        return None
    from partita.database.recovery.s3.sealed_bucket import SealedBucket

    return lambda bucket: SealedBucket(bucket, source.read)


def bucket_key(source: KeySource | None) -> str:
    """Returns the key source that a companion gets, as text.

    A file is passed by its path, so that the companion reads rotated keys. Other sources are passed
    by value: companions do not get the environment variables with secrets.
    """
    if source is None:
        return ""
    from partita.database.storage.sealing.master_keys import print_key

    if source.path is not None:
        return f"file:{source.path.absolute()}"
    return f"keys:{' '.join(map(print_key, source.read()))}"


def key_watch(source: KeySource, keyring: Keyring, database: EmbeddedDatabase) -> KeyWatch:
    from partita.database.storage.sealing.encrypted_folders import KeyWatch

    def name_key() -> None:
        database.service.encryption_key = keyring.fingerprint

    name_key()
    watch = KeyWatch(source, keyring)
    watch.watch(name_key)
    return watch
