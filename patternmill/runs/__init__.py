"""What a run is: request, pipeline, lease, approval, retry, settlement."""
