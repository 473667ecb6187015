"""What a method takes where nobody said: accounting, δ, neighbouring relation (`terms`), and which method (`auto`)."""
