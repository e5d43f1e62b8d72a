"""CloudFormation resources that the templates of the applications share: tables, functions, logs,
roles."""

from __future__ import annotations

from typing import Any

Resource = dict[str, Any]
LOG_DAYS = 14


def parameter(description: str) -> Resource:
    return {"Type": "String", "Description": description}


def table(description: dict[str, Any], **more: Any) -> Resource:
    """A table, which is kept when the stack is deleted."""
    return {
        "Type": "AWS::DynamoDB::Table",
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": {**description, **more},
    }


def logical_id(table_name: str) -> str:
    """The logical id of a table. CloudFormation only allows letters and digits."""
    words = "".join(letter if letter.isalnum() else " " for letter in table_name).split()
    return "".join(word.capitalize() for word in words) + "Table"


def lambda_function(
    id: str, name: str, code_key: str, statements: list[Resource], **properties: Any
) -> dict[str, Resource]:
    """Returns a function with its role and its log group.

    `name` may contain placeholders such as `${AWS::StackName}`. The code is the object `code_key`
    in the bucket CodeBucket, both of which are parameters of the template.
    """
    log = f"{id}Log"
    described = {
        "FunctionName": _substituted(name),
        "Role": arn(f"{id}Role"),
        "Code": {"S3Bucket": {"Ref": "CodeBucket"}, "S3Key": {"Ref": code_key}},
        "LoggingConfig": {"LogGroup": {"Ref": log}},
        **properties,
    }
    may_log = allow(["logs:CreateLogStream", "logs:PutLogEvents"], arn(log))
    return {
        id: {"Type": "AWS::Lambda::Function", "Properties": described},
        f"{id}Role": role("lambda.amazonaws.com", [*statements, may_log]),
        log: {
            "Type": "AWS::Logs::LogGroup",
            "DeletionPolicy": "Delete",
            "UpdateReplacePolicy": "Delete",
            "Properties": {
                "LogGroupName": _substituted(f"/aws/lambda/{name}"),
                "RetentionInDays": LOG_DAYS,
            },
        },
    }


def _substituted(text: str) -> Any:
    return {"Fn::Sub": text} if "${" in text else text


def role(service: str, statements: list[Resource]) -> Resource:
    trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": _policy([trust]),
            "Policies": [{"PolicyName": "needed", "PolicyDocument": _policy(statements)}],
        },
    }


def _policy(statements: list[Resource]) -> Resource:
    return {"Version": "2012-10-17", "Statement": statements}


def allow(actions: list[str], resource: Any) -> Resource:
    return {"Effect": "Allow", "Action": actions, "Resource": resource}


def arn(name: str) -> Resource:
    return {"Fn::GetAtt": [name, "Arn"]}


def table_arn(table_name: str) -> Resource:
    return arn(logical_id(table_name))
