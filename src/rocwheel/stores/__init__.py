"""Stores files by name in folders and S3 buckets and reads them from web servers, through a common interface."""
