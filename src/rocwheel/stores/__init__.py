"""Storage for files by name: folders, S3 buckets, and web servers with a common interface."""
