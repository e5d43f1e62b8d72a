"""The measured servers, which include Partita's peers, and a description of the machine."""
