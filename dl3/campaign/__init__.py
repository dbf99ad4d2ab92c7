"""A campaign's file in, a plan out; all errors about what a person wrote are made here. Nothing is started."""
