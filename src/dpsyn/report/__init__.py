"""What people see: pictures, and accounts in words."""
