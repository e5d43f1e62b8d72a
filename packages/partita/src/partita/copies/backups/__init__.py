"""`partita backup` and `partita restore`: backups of a whole database, in a folder or on S3."""
