"""The live migration of the catalogue from MariaDB to DynamoDB, and back."""
