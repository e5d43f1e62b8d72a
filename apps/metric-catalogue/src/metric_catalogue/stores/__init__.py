"""The two stores of the catalogue, MariaDB and DynamoDB, and the mode that says which one
answers."""
