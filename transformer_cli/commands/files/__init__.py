"""Lines and documents, in and out."""
