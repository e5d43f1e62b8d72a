"""Administration of users, policies, keys and the audit log: the API and the `partita
users|policies|keys|audit` commands.
"""
