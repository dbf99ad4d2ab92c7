"""The labs of the source reports: what each is, and how it is brought up, measured and taken down."""
