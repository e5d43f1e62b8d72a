"""The relational counter that the service replaced. It is kept to compare with, and to migrate
from."""
