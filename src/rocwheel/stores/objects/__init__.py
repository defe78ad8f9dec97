"""Stores that obstore reaches: buckets of S3, and what web servers and memory share with them."""
