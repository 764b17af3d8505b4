"""Amazon EC2, by boto3: credentials, profiles and endpoints come from its own chain alone."""
