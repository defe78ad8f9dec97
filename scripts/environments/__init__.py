"""Installs and tests packages in several releases of Debian, with several Pythons, as root and as an ordinary user."""
