"""``python -m rocwheel``: the command line."""

from rocwheel.cli import main

if __name__ == "__main__":
    main()
