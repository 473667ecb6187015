"""Breast cancer, private in ten lines: what each ε costs in accuracy on rows that were not used."""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import dpbench

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
# What such measurements can be: public, from their meaning, never from the data.
high = [40, 50, 250, 3000, 0.3, 1, 1, 0.5, 0.5, 0.2, 5, 10, 30, 700, 0.1, 0.3, 0.6, 0.1, 0.2, 0.1,
        50, 70, 350, 5000, 0.4, 2, 2, 0.5, 1, 0.3]  # fmt: skip
X, X_unseen, y, y_unseen = train_test_split(X, y, test_size=0.3, random_state=0)
for epsilon in (1, 3, 10):
    model = dpbench.PrivateClassifier(epsilon, bounds=([0] * 30, high), classes=[0, 1]).fit(X, y)
    print(f"accuracy {model.score(X_unseen, y_unseen):.2f}, {model.guarantee_}")
