"""The servers that are measured, Partita's peers among them, and the machine they run on."""
