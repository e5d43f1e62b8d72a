"""What servers share, looked at and copied by commands."""
