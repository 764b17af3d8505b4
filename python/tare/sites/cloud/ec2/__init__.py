"""Amazon EC2 through boto3: credentials, profiles and endpoints come only from boto3's own sources."""
