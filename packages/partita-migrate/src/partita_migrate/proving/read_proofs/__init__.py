"""The proof of reads: requests of a design are sent, and their answers combined and compared with
SQL's."""
