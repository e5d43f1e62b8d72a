"""AWS Lambda's API: functions from requests to answers, in the members of its description."""
