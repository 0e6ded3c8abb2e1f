"""`python -m subak`."""
from subak.cli.main import main

main()
