"""Python source that ships inside the packages; standard library only, imports nothing of rocwheel."""
