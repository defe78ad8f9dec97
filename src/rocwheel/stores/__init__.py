"""Places that hold files by name: folders, S3 buckets and web servers, behind one seam."""
