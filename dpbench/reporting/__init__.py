"""The site: from parquet to figures, tables and the pages around them. Nothing here runs a solver or knows a paper."""
