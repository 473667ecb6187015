"""A private model of one's own data, by one path: schema, encoding, spec, plan, run, model."""
