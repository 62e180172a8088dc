"""Reading: plain SQL, written once for both databases, and the values that it returns."""
