"""Who may do what in a live federation: identities, their tokens, and what each role may."""
