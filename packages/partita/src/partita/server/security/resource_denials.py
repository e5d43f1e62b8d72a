"""Denials by policies of tables, on a server without `--auth`.

Such a server does not authenticate callers, so it ignores what policies allow. But a Deny that
names everybody still counts. With it, a table can refuse writes for a while, except from one writer
whom a condition exempts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partita.database.operations.operation_context import DatabaseService, PermittedRequest
from partita.errors import AccessDeniedException
from partita.server.admission import Denial, Parts
from partita.server.http.http_messages import HttpRequest

if TYPE_CHECKING:
    from partita.server.security.policies.policy_decision import DecisionSteps
    from partita.server.security.rights.requested_rights import RequestedRight, Rights


class ResourceDenials:
    """Checks requests against the policies of tables.

    `rights` is only called once a table has a policy, because most servers never have one.
    """

    def __init__(
        self, service: DatabaseService, rights: Callable[[], Mapping[str, Rights]]
    ) -> None:
        self._service = service
        self._rights = rights
        self._version = -1
        self._are_there = False

    @property
    def are_there(self) -> bool:
        """True if any table has a policy. Computed again after each change of the catalog."""
        catalog = self._service.catalog
        if catalog.version != self._version:
            self._version = catalog.version
            self._are_there = any(table.resource_policy is not None for table in catalog)
        return self._are_there

    def permit(
        self, head: HttpRequest, operation: str, request: dict[str, Any]
    ) -> PermittedRequest:
        """Permits a request, or raises if a policy denies it."""
        from partita.server.security.rights.requested_rights import parts_of, permitted

        parts = parts_of(operation, self._rights()[operation], self._service, request)
        return permitted(request, self.denials(head, parts))

    def denials(self, head: HttpRequest, parts: Parts) -> list[Denial]:
        from partita.server.security.policies.policy_decision import DecisionSteps
        from partita.server.security.rights.requested_rights import denials_of

        steps = DecisionSteps()
        return denials_of(parts, lambda need: self._check(head, need, steps))

    def _check(self, head: HttpRequest, need: RequestedRight, steps: DecisionSteps) -> None:
        if need.policy is None:
            return
        from partita.server.security.policies import policy_decision as policies
        from partita.server.security.policies.policy_documents import RESOURCE, parse_cached

        account = self._service.account_id
        anybody = policies.Principal(f"arn:aws:iam::{account}:root", account)
        policy = parse_cached(need.policy.document, need.resource, RESOURCE)
        context = _Context(self._service, head, need)
        policy_request = policies.PolicyRequest(anybody, need.action, need.resource, context, steps)
        decision = policies.decide(policies.CallerPolicies(resource=(policy,)), policy_request)
        if decision.outcome == policies.EXPLICIT_DENY:
            raise AccessDeniedException(policies.denial(policy_request, decision))


class _Context:
    """The condition keys of a request without a caller."""

    def __init__(
        self, service: DatabaseService, request: HttpRequest, need: RequestedRight
    ) -> None:
        self._service = service
        self._request = request
        self._need = need

    def get(self, key: str, /) -> Sequence[str] | None:
        from partita.server.security.authorization_gate import GLOBAL_KEYS

        global_key = GLOBAL_KEYS.get(key)
        if global_key is not None:
            return global_key(self._service, self._request)
        return self._need.keys().get(key)
