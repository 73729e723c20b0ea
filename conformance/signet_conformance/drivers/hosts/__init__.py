"""Host programs: each plays one kind of harness for a connector and speaks signet-driver/1."""
