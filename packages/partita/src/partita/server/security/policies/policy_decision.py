"""Policy evaluation: decides whether a caller may perform an action on a resource.

A decision is a pure function of policies and request, in AWS's order. An explicit Deny in any
policy denies the request. Otherwise some policy must allow it, and so must the permissions boundary
and the session policy if there are any. A resource's own policy can allow a request alone, because
all callers are in the same account. (IAM User Guide, "Policy evaluation logic")
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from partita.errors import AccessDeniedException
from partita.server.security.policies.condition_operators import PolicyCondition, holds
from partita.server.security.policies.policy_documents import (
    Policy,
    PolicyPrincipals,
    PolicyStatement,
    policy_of,
)
from partita.server.security.policies.policy_patterns import (
    ConditionContext,
    UnresolvedVariable,
    arn_matches,
    has_variables,
    matches,
)

ALLOWED, EXPLICIT_DENY, IMPLICIT_DENY = "allowed", "explicitDeny", "implicitDeny"
"""The outcomes of a decision, as IAM's simulator writes them."""
IDENTITY_POLICY: Final = "identity-based policy"
RESOURCE_POLICY: Final = "resource-based policy"
BOUNDARY: Final = "permissions boundary"
RESOURCE_CHARS_MAX: Final = 2048
"""Longer resources are denied without a comparison with patterns. AWS has no longer ARNs."""
STEPS_MAX: Final = 400_000
"""The limit for the cost of conditions per request, about 100 ms. It is enough to compare an item
of a thousand attributes with four hundred patterns."""
LONG_RESOURCE: Final = f"No policy allows an ARN of over {RESOURCE_CHARS_MAX} characters."
TOO_MANY_STEPS: Final = "The request names too much to be compared with the conditions of policies."
SESSION_POLICY: Final = "session policy"


class StatementMatch(Enum):
    """The ways in which a policy may name a caller, from least to most direct."""

    NO = 0
    ACCOUNT = 1
    """The policy names the account: the caller's own policies must allow the request, too."""
    ROLE = 2
    """The policy names the role of the caller's session: the limits of the session apply."""
    DIRECT = 3


class Principal(NamedTuple):
    """The caller of a request, as policies name it."""

    arn: str
    account: str
    role_arn: str = ""
    """The role, if the caller is a session of a role."""
    service: str = ""
    is_root: bool = False


class DecisionSteps:
    """The cost of conditions for one request so far, over all rights that it needs."""

    __slots__ = ("taken",)

    def __init__(self) -> None:
        self.taken = 0

    def take(self, count: int) -> None:
        self.taken += count
        if self.taken > STEPS_MAX:
            raise AccessDeniedException(TOO_MANY_STEPS)


class PolicyRequest:
    __slots__ = ("action", "context", "lower_action", "principal", "resource", "steps")

    def __init__(
        self,
        principal: Principal,
        action: str,
        resource: str,
        context: ConditionContext,
        steps: DecisionSteps | None = None,
    ) -> None:
        self.principal = principal
        self.action = action
        """service:Action"""
        self.resource = resource
        self.context = context
        self.lower_action = action.lower()
        """The action in lower case, like the actions in statements."""
        self.steps = steps or DecisionSteps()
        if len(resource) > RESOURCE_CHARS_MAX:
            raise AccessDeniedException(LONG_RESOURCE)


class CallerPolicies(NamedTuple):
    """The policies that apply to a request. A limit that is None does not exist; a limit without
    policies allows nothing."""

    identity: Sequence[Policy] = ()
    resource: Sequence[Policy] = ()
    boundary: Sequence[Policy] | None = None
    session: Sequence[Policy] | None = None


class MatchedStatement:
    __slots__ = ("policy", "source", "statement")

    def __init__(self, source: str, policy: Policy, statement: PolicyStatement) -> None:
        self.source = source
        """IDENTITY_POLICY, RESOURCE_POLICY, BOUNDARY, SESSION_POLICY"""
        self.policy = policy
        self.statement = statement


class PolicyDecision:
    __slots__ = ("is_allowed", "matched", "outcome", "source")

    def __init__(
        self, outcome: str, source: str = "", matched: tuple[MatchedStatement, ...] = ()
    ) -> None:
        self.outcome = outcome
        self.source = source
        """The kind of policy that denied or allowed the request, or that fails to allow it."""
        self.matched = matched
        """The statements that decided."""
        self.is_allowed = outcome == ALLOWED


NOT_ALLOWED: Final = PolicyDecision(IMPLICIT_DENY, IDENTITY_POLICY)


def decide(policies: CallerPolicies, request: PolicyRequest) -> PolicyDecision:
    """Decides whether a request is allowed, and by which statements."""
    denied = _first_deny(policies, request)
    if denied is not None:
        return PolicyDecision(EXPLICIT_DENY, denied.source, (denied,))
    own: MatchedStatement | None = None
    if policies.resource:
        granted, how = _resource_grant(policies.resource, request)
        if granted is not None and how is StatementMatch.DIRECT:
            return PolicyDecision(ALLOWED, RESOURCE_POLICY, (granted,))
        own = granted if how is StatementMatch.ROLE else None
    if own is None:
        own = _first_allow(IDENTITY_POLICY, policies.identity, request)
    if own is None and request.principal.is_root:
        return PolicyDecision(ALLOWED)
    if own is None:
        return NOT_ALLOWED
    if policies.boundary is None and policies.session is None:
        return PolicyDecision(ALLOWED, own.source, (own,))
    matched = [own]
    for source, limit in ((BOUNDARY, policies.boundary), (SESSION_POLICY, policies.session)):
        if limit is not None:
            allowed = _first_allow(source, limit, request)
            if allowed is None:
                return PolicyDecision(IMPLICIT_DENY, source, tuple(matched))
            matched.append(allowed)
    return PolicyDecision(ALLOWED, own.source, tuple(matched))


def _first_deny(policies: CallerPolicies, request: PolicyRequest) -> MatchedStatement | None:
    denied = _deny_among(IDENTITY_POLICY, policies.identity, request)
    if denied is None and policies.resource:
        denied = _deny_among(RESOURCE_POLICY, policies.resource, request)
    if denied is None and policies.boundary:
        denied = _deny_among(BOUNDARY, policies.boundary, request)
    if denied is None and policies.session:
        denied = _deny_among(SESSION_POLICY, policies.session, request)
    return denied


def _deny_among(
    source: str, group: Sequence[Policy], request: PolicyRequest
) -> MatchedStatement | None:
    for policy in group:
        for statement in policy.denials:
            if applies(statement, request):
                return MatchedStatement(source, policy, statement)
    return None


def _first_allow(
    source: str, group: Sequence[Policy], request: PolicyRequest
) -> MatchedStatement | None:
    for policy in group:
        for statement in policy.allowances:
            if applies(statement, request):
                return MatchedStatement(source, policy, statement)
    return None


def _resource_grant(
    group: Sequence[Policy], request: PolicyRequest
) -> tuple[MatchedStatement | None, StatementMatch]:
    """Returns the allowing statement of a resource's policy that names the caller most directly."""
    best: tuple[MatchedStatement | None, StatementMatch] = (None, StatementMatch.NO)
    for policy in group:
        for statement in policy.allowances:
            if statement.principals is None:
                continue
            how = principal_match(statement.principals, request.principal)
            if how.value > best[1].value and applies(statement, request):
                best = (MatchedStatement(RESOURCE_POLICY, policy, statement), how)
    return best


def applicable(policies: CallerPolicies, request: PolicyRequest) -> CallerPolicies:
    """Removes the statements that are about another action, resource or caller.

    What remains may still not apply: conditions and variables depend on each request.
    """
    return CallerPolicies(
        _may_apply_in(policies.identity, request),
        _may_apply_in(policies.resource, request),
        None if policies.boundary is None else _may_apply_in(policies.boundary, request),
        None if policies.session is None else _may_apply_in(policies.session, request),
    )


def is_plain_allow(policies: CallerPolicies) -> bool:
    """True if no statement could deny the request and one allows it without a condition.

    The statements must be those that `applicable` returns.
    """
    if policies.resource or policies.boundary is not None or policies.session is not None:
        return False
    statements = [statement for policy in policies.identity for statement in policy.statements]
    if any(statement.is_deny for statement in statements):
        return False
    return any(map(_is_plain, statements))


def _is_plain(statement: PolicyStatement) -> bool:
    return not statement.conditions and not _varies(statement)


def _varies(statement: PolicyStatement) -> bool:
    """True if the resources of a statement depend on the request."""
    return statement.has_variables and any(map(has_variables, statement.resources))


def _may_apply_in(group: Sequence[Policy], request: PolicyRequest) -> tuple[Policy, ...]:
    kept = []
    for policy in group:
        statements = tuple(
            statement for statement in policy.statements if _may_apply(statement, request)
        )
        if statements:
            kept.append(policy_of(policy.name, policy.kind, statements))
    return tuple(kept)


def _may_apply(statement: PolicyStatement, request: PolicyRequest) -> bool:
    if not action_fits(statement, request.lower_action):
        return False
    if not _principal_fits(statement, request.principal):
        return False
    return _varies(statement) or resource_fits(statement, request)


def applies(statement: PolicyStatement, request: PolicyRequest) -> bool:
    """True if a statement applies to this request, whether it allows or denies it."""
    return (
        action_fits(statement, request.lower_action)
        and resource_fits(statement, request)
        and _principal_fits(statement, request.principal)
        and failed_condition(statement, request) is None
    )


def action_fits(statement: PolicyStatement, lower_action: str) -> bool:
    # Fast path: most patterns have a single wildcard at their end.
    if lower_action.startswith(statement.action_prefixes):
        return not statement.is_not_action
    for pattern in statement.actions:
        if matches(pattern, lower_action, None):
            return not statement.is_not_action
    return statement.is_not_action


def resource_fits(statement: PolicyStatement, request: PolicyRequest) -> bool:
    context = request.context if statement.has_variables else None
    for pattern in statement.resources:
        try:
            if arn_matches(pattern, request.resource, context):
                return not statement.is_not_resource
        except UnresolvedVariable:
            if statement.is_not_resource:
                return False
    return statement.is_not_resource


def _principal_fits(statement: PolicyStatement, principal: Principal) -> bool:
    if statement.principals is None:
        return True
    how = principal_match(statement.principals, principal)
    return (how is StatementMatch.NO) == statement.is_not_principal


def principal_match(principals: PolicyPrincipals, principal: Principal) -> StatementMatch:
    if principal.service:
        return (
            StatementMatch.DIRECT if principal.service in principals.services else StatementMatch.NO
        )
    best = StatementMatch.NO
    for name in principals.aws:
        how = StatementMatch.NO
        if name == principal.arn:
            how = StatementMatch.DIRECT
        elif name == "*":
            how = StatementMatch.ROLE if principal.role_arn else StatementMatch.DIRECT
        elif principal.role_arn and name == principal.role_arn:
            how = StatementMatch.ROLE
        elif name in (principal.account, f"arn:aws:iam::{principal.account}:root"):
            how = StatementMatch.ACCOUNT
        if how.value > best.value:
            best = how
    return best


def failed_condition(statement: PolicyStatement, request: PolicyRequest) -> PolicyCondition | None:
    """Returns the first condition that a request does not satisfy, or None."""
    for condition in statement.conditions:
        values = request.context.get(condition.key)
        if values:
            request.steps.take(condition.steps(values))
        if not holds(
            condition,
            values,
            request.context,
            has_variables=statement.has_variables,
            is_deny=statement.is_deny,
        ):
            return condition
    return None


def denial(request: PolicyRequest, decision: PolicyDecision) -> str:
    """Returns AWS's message for a denied request."""
    who = f"User: {request.principal.arn} is not authorized to perform: {request.action}"
    text = f"{who} on resource: {request.resource}"
    article = "an" if decision.source == IDENTITY_POLICY else "a"
    if decision.outcome == EXPLICIT_DENY:
        return f"{text} with an explicit deny in {article} {decision.source}"
    return f"{text} because no {decision.source} allows the {request.action} action"
