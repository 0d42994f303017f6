"""What a run tells: the certificate for programs, the summary for people."""
