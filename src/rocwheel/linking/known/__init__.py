"""What is known of systems and toolkits: names of libraries and where each release keeps them."""
