"""The catalogue in MariaDB or MySQL, from which it is migrated."""
