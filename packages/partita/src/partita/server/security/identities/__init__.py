"""Who there is: users, groups and roles with their keys and policies, and sessions of them."""
