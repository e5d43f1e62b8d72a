"""The operations of backups, point-in-time recovery, exports, imports and bulk puts."""
