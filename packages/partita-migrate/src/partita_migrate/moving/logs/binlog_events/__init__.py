"""The binlog of MariaDB and MySQL, byte by byte: events, table maps, row images and JSON
documents."""
