"""What people look at and decide: the gallery, the page that is served, and decisions in files."""
