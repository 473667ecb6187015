"""Releases whose guarantee holds for the bytes that leave."""
