"""The catalogue in MariaDB or MySQL, where it came from."""
