"""Python source that ships inside the packages. It uses only the standard library and nothing from rocwheel."""
