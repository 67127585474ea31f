"""The files that come out of a run: results.csv, failures.csv, results.jsonl, manifest, gallery."""
