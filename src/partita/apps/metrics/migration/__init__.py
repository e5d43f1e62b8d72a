"""The move of the catalogue from MariaDB to DynamoDB while it is in use, and the way back."""
