"""Each recipe on a few rows in the form of its publisher."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from dpbench import datasets
from dpbench.datasets import bounded_tables, cache, drawn, real
from dpbench.errors import DataError
from dpbench.problems import catalogue
from tests.datasets.matlab import Twister

rng = np.random.default_rng(7)


def standardised(Z):
    return (Z - Z.mean(axis=0)) / Z.std(axis=0)


def clipped(Z):
    return Z / np.maximum(1, np.linalg.norm(Z, axis=1, keepdims=True))


def svmlight(Z, y):
    rows = (" ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(row) if v) for row in Z)
    return "".join(f"{label:+d} {row} \n" for label, row in zip(y, rows, strict=True))


def test_a1a(raw):
    Z = (rng.random((40, 123)) < 0.5).astype(float)
    y = rng.choice([-1, 1], 40)
    X, labels = real.prepare_a1a(raw("a1a.t", svmlight(Z, y)))
    np.testing.assert_allclose(X, clipped(np.hstack([np.ones((40, 1)), standardised(Z)])), rtol=1e-12)
    np.testing.assert_array_equal(labels, y)


def test_adult(raw):
    row = "{}, {}, 77516, Bachelors, {}, Never-married, Sales, Husband, White, {}, 2174, {}, 40, Cuba, {}\n"
    data = row.format(39, "Private", 13, "Male", 0, "<=50K") + row.format(28, "?", 9, "Male", 7, ">50K") + "\n"
    test = "|1x3 Cross validator\n" + row.format(50, "State-gov", 12, "Female", 5, ">50K.") + "\n"
    X, y = real.prepare_adult(raw("adult.data", data, "adult.test", test))
    np.testing.assert_array_equal(y, [-1, 1])
    # Two rows: a column that differs is -1 and 1 before the division by the norm, one that does not is 0. Columns: age,
    # workclass (2), fnlwgt, education, education-num, four groups of one, sex (2), gain, loss, hours, country.
    signs = np.array([-1, 1, -1, 0, 0, 1, 0, 0, 0, 0, -1, 1, 0, -1, 0, 0])
    expected = np.stack([signs, -signs]) / np.sqrt(np.abs(signs).sum())
    np.testing.assert_allclose(X, expected, rtol=1e-12)


def test_adult_by_maxima_loses_the_last_complete_row_of_each_file(raw):
    row = "{}, Private, 77516, Bachelors, {}, Never-married, Sales, Husband, White, {}, 2174, {}, 40, Cuba, {}\n"
    data = (
        row.format(30, 13, "Male", 10, "<=50K")
        + row.format(60, 9, "Female", 5, ">50K")
        + row.format(99, 16, "Male", 50, ">50K")
    )
    data += "28, ?, 1, Bachelors, 9, Never-married, Sales, Husband, White, Male, 1, 1, 1, Cuba, >50K\n\n"
    test = "|1x3 Cross validator\n" + row.format(45, 13, "Male", 0, ">50K.") + row.format(90, 16, "Male", 50, ">50K.")
    X, y = real.adult_by_maxima(raw("adult.data", data, "adult.test", test))
    np.testing.assert_array_equal(y, [-1, 1, 1])
    # ones, age/60, workclass, fnlwgt, education, education-num/13, five groups of one but for sex (2), gain, loss/10, …
    one = np.ones(3)
    columns = [one, [0.5, 1, 0.75], one, one, one, [1, 9 / 13, 1], one, one, one, one]
    columns += [[0, 1, 0], [1, 0, 1], one, [1, 0.5, 0], one, one]
    np.testing.assert_allclose(X, clipped(np.array(columns).T), rtol=1e-12)


@pytest.fixture
def forest(raw, monkeypatch):
    own = np.random.default_rng(7)  # the same rows whatever ran before: some of every class are below 0
    table = np.zeros((60, 55), dtype=int)
    table[:, :10] = own.integers(-300, 3000, (60, 10))
    table[np.arange(60), own.integers(10, 54, 60)] = 1
    table[:, 54] = np.arange(60) % 7 + 1
    monkeypatch.setattr(real, "COVERTYPE_ROWS", 60)
    text = "".join(",".join(map(str, row)) + "\n" for row in table)
    return table, raw("covtype.data.gz", gzip.compress(text.encode()))


def test_covertype_3_against_6(forest):
    table, paths = forest
    chosen = np.isin(table[:, 54], (3, 6))
    Z = table[chosen, :54].astype(float)
    Z = np.where(Z.std(axis=0) > 0, (Z - Z.mean(axis=0)) / np.maximum(Z.std(axis=0), 1e-300), 0)
    X, y = real.prepare_covertype(paths)
    np.testing.assert_allclose(X, clipped(np.hstack([np.ones((len(Z), 1)), Z])), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(y, np.where(table[chosen, 54] == 3, 1, -1))


def test_covertype_by_maxima_of_all_rows_whatever_their_class(forest):
    table, paths = forest
    chosen = np.isin(table[:, 54], (3, 6))
    Z = table[chosen, :54].astype(float)
    Z[:, :10] /= table[:, :10].max(axis=0)  # of all classes; negative values stay
    assert (Z < 0).any()
    assert (table[chosen, :10].max(axis=0) < table[:, :10].max(axis=0)).any()  # else the next line could not fail
    X, y = real.covertype_by_maxima(paths)
    np.testing.assert_allclose(X, clipped(np.hstack([np.ones((len(Z), 1)), Z])), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(y, np.where(table[chosen, 54] == 6, 1, -1))


def test_covertype_1_against_2_standardises_before_the_class_filter(forest):
    table, paths = forest
    chosen = np.isin(table[:, 54], (1, 2))
    Z = np.hstack([standardised(table[:, :10]), table[:, 10:54]])[chosen]
    X, y = real.prepare_covertype12(paths)
    np.testing.assert_allclose(X, clipped(Z / 4), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(y, np.where(table[chosen, 54] == 1, 1, -1))


def test_covertype_with_rows_missing(forest, monkeypatch):
    monkeypatch.setattr(real, "COVERTYPE_ROWS", 61)
    with pytest.raises(DataError, match="60 rows found, 61 expected"):
        real.prepare_covertype(forest[1])


def test_ijcnn(raw):
    Z = np.hstack([np.eye(10)[rng.integers(0, 10, 50)], rng.normal(2, 3, (50, 12))])
    y = rng.choice([-1, 1], 50)
    X, labels = real.prepare_ijcnn(raw("ijcnn1.bz2", svmlight(Z, y)))
    np.testing.assert_allclose(X, clipped(np.hstack([Z[:, :10], standardised(Z[:, 10:])]) / 3), rtol=1e-12)
    np.testing.assert_array_equal(labels, y)
    assert X.flags.c_contiguous


def test_ijcnn_weighted_standardises_the_label_with_the_columns(raw):
    Z = np.hstack([np.eye(10)[rng.integers(0, 10, 50)], rng.normal(2, 3, (50, 12))])
    y = rng.choice([-1, 1], 50, p=[0.9, 0.1])
    X, labels = real.ijcnn_weighted(raw("ijcnn1.bz2", svmlight(Z, y)))
    table = np.column_stack([Z, y])
    table[:, 10:] = (table[:, 10:] - table[:, 10:].mean(axis=0)) / table[:, 10:].std(axis=0, ddof=1)
    np.testing.assert_allclose(X * labels[:, None], table[:, :-1] * table[:, -1:], rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(labels, y)


def test_ijcnn_unclipped_has_the_roundings_of_the_authors_scripts(raw):
    """Features in float32 over 3, and the label, standardised and rounded as well, as a row's length."""
    Z = np.hstack([np.eye(10)[rng.integers(0, 10, 50)], rng.normal(2, 3, (50, 12))])
    y = rng.choice([-1, 1], 50, p=[0.7, 0.3])
    X, labels = real.ijcnn_unclipped(raw("ijcnn1.bz2", svmlight(Z, y)))
    Z[:, 10:] = (Z[:, 10:] - Z[:, 10:].mean(axis=0)) / Z[:, 10:].std(axis=0, ddof=1)
    z = ((y - y.mean()) / y.std(ddof=1)).astype(np.float32).astype(float)
    rounded = (Z.astype(np.float32) / np.float32(3)).astype(float)
    np.testing.assert_allclose(X, rounded * np.abs(z)[:, None], rtol=3e-7, atol=1e-9)
    np.testing.assert_array_equal(labels, y)


def idx(array):
    return gzip.compress(struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes())


def test_fmnist(raw):
    images = rng.integers(0, 256, (6, 28, 28), dtype=np.uint8)
    labels = np.array([0, 3, 1, 3, 9, 0], dtype=np.uint8)
    X, y = real.prepare_fmnist(
        raw("train-images-idx3-ubyte.gz", idx(images), "train-labels-idx1-ubyte.gz", idx(labels))
    )
    chosen = [0, 1, 3, 5]
    np.testing.assert_allclose(X, clipped((images[chosen].reshape(4, 784) / 255 - 0.5) / 0.5), rtol=1e-12)
    np.testing.assert_array_equal(y, [-1, 1, 1, -1])


def test_california_has_the_features_of_scikit_learn(raw):
    #      long     lat   age  rooms  bedrooms  pop  households  income  value
    row = [-122.23, 37.88, 41, 880.0, 129.0, 322.0, 126.0, 8.3252, 452600.0]
    other = [-122.22, 37.86, 21, 7099.0, 1106.0, 2401.0, 1138.0, 8.3014, 358500.0]
    third = [-122.24, 37.85, 52, 1467.0, 190.0, 496.0, 177.0, 7.2574, 352100.0]
    text = "".join(",".join(f"{v:f}" for v in r) + "\n" for r in (row, other, third))
    X, y = real.prepare_california(raw("cal_housing.data", text))
    # The first rows of sklearn.datasets.fetch_california_housing().data, as its documentation prints them.
    published = np.array(
        [
            [8.3252, 41.0, 6.98412698, 1.02380952, 322.0, 2.55555556, 37.88, -122.23],
            [8.3014, 21.0, 6.23813708, 0.97188049, 2401.0, 2.10984183, 37.86, -122.22],
            [7.2574, 52.0, 8.28813559, 1.07344633, 496.0, 2.80225989, 37.85, -122.24],
        ]
    )
    np.testing.assert_allclose(X, standardised(published), atol=1e-6)
    np.testing.assert_allclose(y, [4.526, 3.585, 3.521], rtol=1e-14)


def test_madelon(raw):
    Z = rng.integers(400, 560, (5, 500))
    text = ["".join(" ".join(map(str, row)) + " \n" for row in part) for part in (Z[:3], Z[3:])]
    paths = raw(
        *("madelon_train.data", text[0], "madelon_train.labels", "-1\n1\n1\n"),
        *("madelon_valid.data", text[1], "madelon_valid.labels", "1\n-1\n"),
    )
    X, y = real.prepare_madelon(paths)
    np.testing.assert_allclose(X[:, 1:], standardised(Z), rtol=1e-12, atol=1e-14)
    assert (X[:, 0] == 1).all()  # not standardised, not clipped
    np.testing.assert_array_equal(y, [-1, 1, 1, 1, -1])


def test_dorothea_is_sparse_and_loses_constant_columns(raw):
    #   columns 1..6: 1 varies, 2 all ones, 3 empty, 4 varies, 5 empty, 6 varies
    text = "1 2 6 \n2 4 6 \n1 2 \n2 4 6 \n"
    X, y = real.prepare_dorothea(raw("dorothea_train.data", text, "dorothea_train.labels", "-1\n1\n-1\n1\n"))
    ones = np.array([[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 1]])
    assert isinstance(X, csr_array)
    np.testing.assert_array_equal(X.toarray(), ones)
    np.testing.assert_array_equal(y, [-1, 1, -1, 1])


def melting(n=30):
    return rng.normal(5, 2, (n, 202)), rng.uniform(14, 392, n)


def test_mtp_from_openml(raw):
    Z, target = melting()
    head = "@RELATION mtp\n" + "".join(f"@ATTRIBUTE oz{j + 1} REAL\n" for j in range(203)) + "@DATA\n"
    body = "".join(",".join(f"{v:.17g}" for v in row) + "\n" for row in np.column_stack([Z, target]))
    X, y = real.prepare_mtp(raw("mtp.arff", head + body))
    np.testing.assert_allclose(X, standardised(Z), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(y, standardised(target), rtol=1e-10)
    with pytest.raises(DataError, match=r"mtp\.arff: not an ARFF file"):
        real.prepare_mtp(raw("mtp.arff", "<html>\n"))


def test_mtp_from_qsardata(raw):
    Z, target = melting()
    head = ",".join([*(f"d{j}" for j in range(202)), "MP_Data", "MP_Outcome"])
    rows = [",".join([*(f"{v:.17g}" for v in row), "Train", f"{t:.17g}"]) for row, t in zip(Z, target, strict=True)]
    X, y = real.prepare_mtp_qsar(raw("MeltingPoint.csv.gz", gzip.compress("\n".join([head, *rows]).encode())))
    np.testing.assert_allclose(X, standardised(Z), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(y, standardised(target), rtol=1e-10)


def bio_train(n, positive):
    Z = rng.normal(10, 30, (n, 74)).round(2)
    label = np.zeros(n, int)
    label[rng.choice(n, positive, replace=False)] = 1
    rows = (f"{i % 5}\t{i}\t{label[i]}\t" + "\t".join(f"{v:.2f}" for v in Z[i]) + "\n" for i in range(n))
    return Z, label, "".join(rows)


def test_protein_takes_the_rows_of_the_paper(raw, monkeypatch):
    monkeypatch.setattr(real, "PROTEIN_ROWS", 200)
    monkeypatch.setattr(real, "PROTEIN_POSITIVE", 20)
    monkeypatch.setattr(real, "PROTEIN_CHOSEN", 80)
    Z, label, text = bio_train(200, 20)
    X, y = real.prepare_protein(raw("bio_train.dat", text))
    rows = np.random.RandomState(3000).choice(200, 80, replace=False)
    np.testing.assert_allclose(X, clipped(np.hstack([np.ones((80, 1)), standardised(Z[rows])])), rtol=1e-10)
    np.testing.assert_array_equal(y, 2 * label[rows] - 1)
    with pytest.raises(DataError, match="200 rows, 19 positive found; 200, 20 expected"):
        real.prepare_protein(raw("bio_train.dat", bio_train(200, 19)[2]))


def test_the_protein_sample_is_not_taken_for_protein(home, tmp_path):
    folder = tmp_path / "mirror"
    folder.mkdir()
    for name in ("bio_train_sample1000.dat.gz", "bio_train.dat.gz"):
        (folder / name).write_bytes(gzip.compress(bio_train(1000, 15)[2].encode()))
    (result,) = datasets.fetch(["protein"], mirror=folder)
    assert result.status == "failed"
    assert "bio_train.dat: 1000 rows found, 145751 expected" in result.detail


@pytest.mark.parametrize("name", drawn.SEEDS)
def test_synthetic_data_are_the_same_at_every_draw(name):
    first, second = (datasets.describe(name).prepare({}) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    loaded = datasets.load(name)
    np.testing.assert_array_equal(loaded.X, first[0])


SMALL = {spec.name for spec in drawn.SPECS if spec.rows * spec.columns <= 500_000} - {"breast-cancer"}


@pytest.mark.thorough_but(*SMALL)
@pytest.mark.parametrize("name", [spec.name for spec in drawn.SPECS])
def test_what_is_drawn_or_bundled_is_what_results_were_computed_on(name):
    spec = datasets.describe(name)
    assert spec.versioned in cache.pinned()
    parts = cache.parts_of(*spec.prepare({}))
    cache.check(spec.versioned, Path(), cache.digest(parts), parts)


def test_synthetic_follows_its_logistic_model():
    X, y = drawn.sphere({})
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-15)
    assert np.abs(X.mean(axis=0)).max() < 5 / np.sqrt(100 * len(X))
    p = 1 / (1 + np.exp(-X.sum(axis=1)))
    # Under the model Σ (1{y = 1} - p) s has variance Σ p(1 - p) s², for s = 1 and s = <x, 1>.
    for s in (np.ones(len(X)), X.sum(axis=1)):
        z = np.sum(((y > 0) - p) * s) / np.sqrt(np.sum(p * (1 - p) * s**2))
        assert abs(z) < 4


@pytest.mark.parametrize(("name", "sigma", "seed"), [("log1", 1.0, 5), ("log2", 2.0, 9), ("lognormal", 1.0, None)])
def test_lognormal_models(name, sigma, seed):
    """The published kind of w_true; labels that a noise as large as the signal leaves right at arctan(1)/π + 1/2."""
    X, y = datasets.describe(name).prepare({})
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(X.std(axis=0), 1, rtol=1e-12)
    own = np.random.Generator(np.random.PCG64DXSM(drawn.SEEDS[name])) if seed is None else None
    rng = own or np.random.default_rng(seed)
    rng.standard_normal((1000, 100))
    w_true = rng.lognormal(0, sigma, 100)
    assert abs(np.log(w_true).std() / sigma - 1) < 4 / np.sqrt(2 * 100)
    right = np.mean(np.sign(X @ w_true) == y)
    assert right > 0.9 if own else abs(right - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 1000)


@pytest.mark.parametrize(("prepare", "noise"), [(drawn.square, 150.0), (drawn.sparse_linear, 1.0)])
def test_square_is_a_linear_model_with_ten_coefficients(prepare, noise):
    X, y = prepare({})
    covariance = X.T @ y / len(y)
    support = np.argsort(-np.abs(covariance))[:60]
    residual = y - X[:, support] @ np.linalg.lstsq(X[:, support], y, rcond=None)[0]
    assert residual.std() < max(10, 1.1 * noise) < y.std() / 1.5


@pytest.mark.slow
def test_accelerated_starts_where_the_published_curves_do():
    """F(x₀) - F* of the frozen seed is within 1 % of the published 29.1."""
    U, z = datasets.load("accelerated").X, datasets.load("accelerated").y
    A = U * z[:, None]

    def objective(x):
        margin = A @ x
        value = np.logaddexp(0, -margin).mean() + 0.01 * x @ x
        return value, A.T @ (-1 / (1 + np.exp(margin))) / len(A) + 0.02 * x

    best = minimize(objective, np.zeros(20), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
    gap = objective(np.full(20, 10.0))[0] - best.fun
    assert gap == pytest.approx(29.0948, abs=1e-4)
    assert abs(gap / 29.1 - 1) < 0.01


# What MATLAB prints after `rng default`: its documentation's first numbers, to four decimals.
RAND = [0.8147, 0.9058, 0.1270, 0.9134, 0.6324, 0.0975, 0.2785, 0.5469, 0.9575, 0.9649]
RANDN = [0.5377, 1.8339, -2.2588, 0.8622, 0.3188, -1.3077, -0.4336, 0.3426, 3.5784, 2.7694, -1.3499, 3.0349, 0.7254,
         -0.0631, 0.7147, -0.2050, -0.1241, 1.4897, 1.4090, 1.4172, 0.6715, -1.2075, 0.7172, 1.6302, 0.4889, 1.0347,
         0.7269, -0.3034, 0.2939, -0.7873, 0.8884, -1.1471, -1.0689, -0.8095, -2.9443, 1.4384, 0.3252, -0.7549, 1.3703,
         -1.7115, -0.1022, -0.2414, 0.3192, 0.3129, -0.8649, -0.0301, -0.1649, 0.6277, 1.0933, 1.1093, -0.8637, 0.0774,
         -1.2141, -1.1135, -0.0068, 1.5326, -0.7697, 0.3714, -0.2256]  # fmt: skip


def test_rand_is_matlabs():
    assert Twister(0).rand(2, 5).T.ravel() == pytest.approx(RAND, abs=5.1e-5)


def test_randn_is_matlabs_through_its_first_wedge():
    """The 52nd number lies outside its layer's rectangle, and takes one `rand` more."""
    assert Twister(0).randn(len(RANDN)) == pytest.approx(RANDN, abs=5.1e-5)


def test_the_draw_of_2020_is_matlabs():
    stream = Twister(1)
    U = stream.rand(100_000, 20)
    X, y = drawn.cube_of_2020({})
    np.testing.assert_array_equal(X, U)
    np.testing.assert_array_equal(stream.randn(20), drawn.X_TRUE_OF_2020)
    np.testing.assert_array_equal(y, np.sign(U @ np.array(drawn.X_TRUE_OF_2020)))


def test_randn_is_normal():
    from scipy import stats

    assert stats.kstest(Twister(1).randn(1000), "norm").pvalue > 0.001


def test_the_authors_data_start_where_their_curves_do():
    """F(x₀) - F* of the figures' drawings is 29.121 after one step of .1/L; F* here by its gradient."""
    data = datasets.load("accelerated-2020")
    X, y = np.asarray(data.X), np.asarray(data.y)
    assert X.shape == (100_000, 20)
    L = np.linalg.eigvalsh(X.T @ X / len(X))[-1] + 0.02
    assert pytest.approx(5.100080706735988, rel=1e-12) == L

    def objective(w):
        return np.logaddexp(0, -y * (X @ w)).mean() + 0.01 * w @ w

    def gradient(w):
        return -(X.T @ (y / (1 + np.exp(y * (X @ w))))) / len(y) + 0.02 * w

    w = np.full(20, 10.0)
    assert objective(w) - 0.2823099413524194 == pytest.approx(29.1447, abs=1e-4)
    step = objective(w - 0.1 / L * gradient(w)) - 0.2823099413524194
    assert step == pytest.approx(29.1210, rel=5.5e-5)  # a thousandth of a point of the drawing


def test_a1a_all_is_both_splits_scaled_by_a_constant(real_data):
    X, y = real_data("a1a-all").X, real_data("a1a-all").y
    active = np.count_nonzero(X, axis=1) - 1  # but for the ones column
    assert active.min() == 11
    assert active.max() == real.A1A_ACTIVE
    np.testing.assert_array_equal(np.unique(X), [0, 1 / np.sqrt(15)])
    assert (X[:, 0] > 0).all()
    assert y[:1605].tolist().count(1.0) == 395


TABLE = {
    "files": {"t.csv": ""}, "flags": ["member"], "missing": ["age"], "numbers": {"age": ["years", 20, 60]},
    "categories": {"town": ["x", "y"]},
}  # fmt: skip
ROWS = "age,town,member,paid\n20,x,0,3\n90,y,1,5\n,z,0,1\n40,x,1,\n"


def test_a_table_is_scaled_by_what_is_written_down_alone(raw):
    """Twice the rows, or another row beside them, changes no row."""
    X, y = bounded_tables.prepare(TABLE | {"y": {"paid": ["$", 0, 4]}}, raw("t.csv", ROWS))
    # The intercept, age and membership in [-1, 1], whether age is missing, a column per town; the last has no target.
    expected = [[1, -1, -1, 0, 1, 0], [1, 1, 1, 0, 0, 1], [1, 0, -1, 1, 0, 0]]
    np.testing.assert_allclose(X, np.array(expected) / np.sqrt(4))
    np.testing.assert_array_equal(y, [0.5, 1.0, -0.5])
    np.testing.assert_array_equal(
        bounded_tables.prepare(TABLE | {"y": {"paid": {"above": 1}}}, raw("t.csv", ROWS))[1], [1, 1, -1]
    )
    named = bounded_tables.prepare(TABLE | {"y": {"town": {"positive": ["z"]}}}, raw("t.csv", ROWS + "60,z,1,0\n"))
    np.testing.assert_array_equal(named[1], [-1, -1, 1, -1, 1])
    np.testing.assert_array_equal(named[0][:3], X)
    with pytest.raises(DataError, match="no column paid found"):
        bounded_tables.prepare(TABLE | {"y": {"paid": {"above": 1}}}, raw("t.csv", ROWS.replace("paid", "owed")))


def test_a_table_with_a_unit_says_whose_its_rows_are(raw):
    by_town = TABLE | {"y": {"paid": ["$", 0, 4]}, "unit": "town"}
    X, y, whose = bounded_tables.prepare(by_town, raw("t.csv", ROWS + "60,y,1,0\n"))
    np.testing.assert_array_equal(whose, [0, 1, 2, 1])  # x, y, z, y; the other x has no target
    assert len(X) == len(y) == 4
    with pytest.raises(DataError, match="no column town found"):
        bounded_tables.prepare(by_town | {"categories": {}}, raw("t.csv", ROWS.replace("town", "city")))


@pytest.mark.parametrize("spec", bounded_tables.SPECS, ids=lambda spec: spec.name)
def test_a_real_table_says_who_collected_it_and_its_rows_are_bounded_whatever_they_hold(spec):
    assert spec.citation
    assert spec.licence
    assert catalogue.recipe_of(spec.name).row_bound == 1.0
    one = spec.prepare.args[0]
    for _, low, high in one.get("numbers", {}).values():
        assert low < high
    if not spec.files:
        X, y = spec.prepare({})
        assert (len(y), X.shape[1]) == (spec.rows, spec.columns)
        assert np.linalg.norm(X, axis=1).max() <= 1


def test_generated_columns_have_the_moments_and_quantiles_of_their_laws():
    from scipy import stats

    X = drawn._shifted(np.random.default_rng(0), 40_000, 3)
    np.testing.assert_allclose([X.mean(axis=0), X.std(axis=0)], [[1.0] * 3, [0.5] * 3], atol=0.02)
    X = drawn._heavy(np.random.default_rng(0), 40_000, 3)
    shares = np.array([0.25, 0.5, 0.75, 0.95])
    expected = stats.t(3).ppf(shares) / stats.t(3).std()
    np.testing.assert_allclose(np.quantile(X, shares, axis=0), np.tile(expected, (3, 1)).T, atol=0.05)
