"""The service on AWS: Kinesis, Lambda, DynamoDB and Managed Service for Apache Flink.

`pagehits_cloudformation` makes a template from pagehits.toml. The processor, the API and the
consumer run as Lambda functions (`lambda_functions`), the counter as a Flink job (`flink_job`).
`aws_costs` computes what designs cost on AWS.
"""
