"""Python source that is included in the packages. It uses only the standard library and nothing from rocwheel."""
