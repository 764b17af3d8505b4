"""`python -m tare`."""

from tare.cli import main

if __name__ == "__main__":
    main()
