"""rocwheel as a build tool; it is installed in the Python that ROCWHEEL_PYTHON names."""

from rocwheel.cli import main

main()
