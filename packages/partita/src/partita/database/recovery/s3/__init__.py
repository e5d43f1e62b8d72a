"""Exports to buckets, imports and bulk puts from them; a bucket is on S3 or a folder."""
