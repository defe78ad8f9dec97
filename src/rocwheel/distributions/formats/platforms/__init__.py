"""Platform tags: what installers take, which glibc they promise, and which of them a person gave."""
