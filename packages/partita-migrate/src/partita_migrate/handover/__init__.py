"""Handing a design over: its tables made or written out, and the requests of every pattern.

settings     what people decide about the tables in `[create]`
tables       the tables of a design as DynamoDB is asked to make them
differences  what a table that is there already has otherwise
create       stage `create`
emit         the same tables for CloudFormation, Terraform, CDK, boto3 and the AWS CLI
requests     each access pattern in boto3, JavaScript and PartiQL, ready to run
"""
