"""The road from SQL, on real servers: private ones, started here and gone with the tests."""
