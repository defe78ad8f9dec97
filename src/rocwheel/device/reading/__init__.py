"""Device code read: facts for people, extraction, and which GPUs a file runs on."""
