"""What runs training jobs for a controller: commands go down, reports come up, over any number of machines."""
