"""The same parts on AWS: Kinesis, Lambda, DynamoDB and Managed Service for Apache Flink.

`template.py` makes a CloudFormation template of pagehits.toml. The processor, the API and the
consumer run as Lambda functions, the counter as the Flink job of `flink.py`.
"""
