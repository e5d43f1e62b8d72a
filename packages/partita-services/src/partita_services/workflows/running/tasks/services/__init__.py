"""Tasks that call HTTP endpoints, run jobs, send messages, or read and write objects in S3."""
