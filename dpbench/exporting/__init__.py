"""What goes with a saved model to whoever uses it: a card, and a query for where there is no dpbench."""
