"""Hands a design over: creates its tables or writes them for other tools, and writes its requests.

settings     the section `[create]` of `migration.toml` tables       CreateTable requests for the
tables of a design differences  how an existing table differs from the design create       stage
`create` emit         the same tables for CloudFormation, Terraform, CDK, boto3 and the AWS CLI
requests     every access pattern in boto3, JavaScript and PartiQL, ready to run
"""
