"""The words of messages: counts with their nouns, quotes of inputs, and what the user may have meant."""
