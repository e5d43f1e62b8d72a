"""Explains what a policy decision would be and why: as text, and in the form of IAM's simulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from partita.errors import PartitaError
from partita.server.security.identities.callers import Caller, Callers
from partita.server.security.identities.session_tokens import ROLE, SessionClaims
from partita.server.security.identities.user_directory import Directory, find_user
from partita.server.security.policies.policy_decision import (
    ALLOWED,
    EXPLICIT_DENY,
    IDENTITY_POLICY,
    CallerPolicies,
    MatchedStatement,
    PolicyDecision,
    PolicyRequest,
    action_fits,
    applies,
    decide,
    failed_condition,
    resource_fits,
)
from partita.server.security.policies.policy_documents import Policy, PolicyStatement
from partita.server.security.policies.policy_patterns import variables_of
from partita.server.security.rights import service_tables

ConditionKeys = Mapping[str, Sequence[str]]


def simulated_caller(directory: Directory, name: str) -> Caller:
    """Returns a caller for `NAME`, a user, or for `role/NAME`, a session of a role."""
    callers = Callers(directory)
    kind, slash, role_name = name.partition("/")
    if slash and kind == "role":
        role = directory.roles.get(role_name)
        if role is None:
            raise PartitaError(f"There is no role {role_name}; `partita users list` shows all.")
        session = SessionClaims("", ROLE, role_name, role.id, "simulated", 0, 0)
        return callers.role(role_name, role, "", session)
    return callers.user(name, find_user(directory, name), "")


def _request(
    caller: Caller, action: str, resource: str, condition_keys: ConditionKeys
) -> PolicyRequest:
    return PolicyRequest(caller.principal, action, resource, {**caller.keys, **condition_keys})


def _policies(caller: Caller, resource_policies: Sequence[Policy]) -> CallerPolicies:
    return caller.policies._replace(resource=resource_policies)


def explained(
    caller: Caller,
    action: str,
    resource: str,
    condition_keys: ConditionKeys,
    resource_policies: Sequence[Policy] = (),
) -> Iterator[str]:
    """Yields the outcome, the statements that decided it, and why each other one did not."""
    if ":" not in action:
        raise PartitaError(f"An action is written as service:Action, not {action!r}.")
    policies = _policies(caller, resource_policies)
    request = _request(caller, action, resource, condition_keys)
    decision = _decision(policies, request)
    verb = "may" if decision.is_allowed else "may not"
    yield f"{caller.arn} {verb} {action} on {resource}."
    if service_tables.is_reserved(action, resource):
        yield f"This also needs {service_tables.ACTION}: services keep their own state there."
    yield _reason(decision, caller)
    for matched in decision.matched:
        yield f"  {_place(matched)}"
    decisive = {(match.policy.name, match.statement.place) for match in decision.matched}
    for source, policy in _all(policies):
        for statement in policy.statements:
            if (policy.name, statement.place) not in decisive:
                place = _place(MatchedStatement(source, policy, statement))
                yield f"  {place}: {_why_not(statement, request)}"


def _decision(policies: CallerPolicies, request: PolicyRequest) -> PolicyDecision:
    """Decides like the gate: a table of a service needs a further right."""
    decision = decide(policies, request)
    if decision.is_allowed and service_tables.is_reserved(request.action, request.resource):
        further_request = PolicyRequest(
            request.principal, service_tables.ACTION, request.resource, request.context
        )
        further = decide(policies, further_request)
        return decision if further.is_allowed else further
    return decision


def _reason(decision: PolicyDecision, caller: Caller) -> str:
    if decision.outcome == EXPLICIT_DENY:
        return f"A statement of a {decision.source} denies it, which nothing can override:"
    if not decision.is_allowed:
        return f"No {decision.source} allows it."
    if not decision.matched:
        return "The root user may do what nothing denies."
    return "Nothing denies it, and it is allowed by:"


def _place(matched: MatchedStatement) -> str:
    statement = matched.statement
    name = f"Sid {statement.sid}" if statement.sid else f"statement {statement.place + 1}"
    effect = "Deny" if statement.is_deny else "Allow"
    return f"{effect}, {name} (line {statement.line}) of {matched.policy.name}, {matched.source}"


def _why_not(statement: PolicyStatement, request: PolicyRequest) -> str:
    if not action_fits(statement, request.lower_action):
        return "is about other actions"
    if not resource_fits(statement, request):
        return "is about other resources"
    condition = failed_condition(statement, request)
    if condition is not None:
        values = request.context.get(condition.key)
        shown = "is not in the request" if values is None else f"is {', '.join(values)}"
        return f"its condition {condition} does not hold: the key {shown}"
    return "applies too" if applies(statement, request) else "is about others"


def _all(policies: CallerPolicies) -> Iterator[tuple[str, Policy]]:
    for source, group in (
        (IDENTITY_POLICY, policies.identity),
        ("resource-based policy", policies.resource),
        ("permissions boundary", policies.boundary or ()),
        ("session policy", policies.session or ()),
    ):
        for policy in group:
            yield source, policy


def simulated(
    caller: Caller,
    actions: Sequence[str],
    resources: Sequence[str],
    condition_keys: ConditionKeys,
    resource_policies: Sequence[Policy] = (),
) -> dict[str, Any]:
    """Returns the response of IAM's SimulatePrincipalPolicy."""
    policies = _policies(caller, resource_policies)
    results = []
    for action in actions:
        for resource in resources:
            request = _request(caller, action, resource, condition_keys)
            decision = _decision(policies, request)
            results.append(_result(caller, policies, request, decision))
    return {"EvaluationResults": results, "IsTruncated": False}


def _result(
    caller: Caller, policies: CallerPolicies, request: PolicyRequest, decision: PolicyDecision
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "EvalActionName": request.action,
        "EvalResourceName": request.resource,
        "EvalDecision": decision.outcome,
        "MatchedStatements": [
            {
                "SourcePolicyId": match.policy.name,
                "SourcePolicyType": _source_type(match.source, caller),
                "StartPosition": {"Line": match.statement.line},
            }
            for match in decision.matched
            if decision.outcome in (ALLOWED, EXPLICIT_DENY)
        ],
        "MissingContextValues": _missing(policies, request),
    }
    if policies.boundary is not None:
        limited = decide(CallerPolicies(identity=policies.boundary), request)
        result["PermissionsBoundaryDecisionDetail"] = {
            "AllowedByPermissionsBoundary": limited.is_allowed
        }
    return result


def _source_type(source: str, caller: Caller) -> str:
    if source != IDENTITY_POLICY:
        return "Resource Policy" if source.startswith("resource") else "IAM Policy"
    return "IAM Policy"


def _missing(policies: CallerPolicies, request: PolicyRequest) -> list[str]:
    """Returns the condition keys that policies use and the request does not have."""
    keys: set[str] = set()
    for _, policy in _all(policies):
        for statement in policy.statements:
            for condition in statement.conditions:
                keys.add(condition.key)
                keys |= {name for value in condition.values for name in variables_of(value)}
            keys |= {name for resource in statement.resources for name in variables_of(resource)}
    return sorted(key for key in keys if request.context.get(key) is None)
