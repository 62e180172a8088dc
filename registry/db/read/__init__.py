"""Reading: plain SQL, written once for both databases, and the classes of the values it returns."""
