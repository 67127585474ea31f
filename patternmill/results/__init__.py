"""What a run gives back: results.csv, failures.csv, results.jsonl, manifest, gallery."""
