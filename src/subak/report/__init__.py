"""What happened: runs read back, compared, drawn and written down."""
