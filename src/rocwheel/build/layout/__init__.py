"""Which files go where: facts, selection and placement."""
