"""The equations of the paper written out sample by sample, with what [·]sg holds constant as separate arguments.

Each reference is a plain loop over samples in float64: nothing is shared with the code under test. `W` is what the
gradient is taken of, `F` the same filters frozen; their finite differences in W are the gradient with stop gradients.
"""

import numpy as np


def columns(k):
    return range(k)


def triangle(M, *, diagonal=True):
    """Column j keeps what the columns before it put in (rows i ≤ j)."""
    out = np.zeros_like(M)
    for j in columns(M.shape[1]):
        for i in range(j + 1 if diagonal else j):
            out[i, j] = M[i, j]
    return out


def square(v):
    return float(np.sum(np.asarray(v) ** 2))


class Reference:
    """One batch: x (b, p); frozen filters F; h, sigma (k,), lam, mask (b, k), alpha, beta as the method takes them."""

    def __init__(self, x, F, h, sigma, lam, mask, alpha, beta):
        self.x, self.F, self.h, self.sigma = x, F, h, sigma
        self.lam, self.mask, self.alpha, self.beta = lam, mask, alpha, beta

    def mean(self, of_sample):
        return sum(of_sample(i, xi) for i, xi in enumerate(self.x)) / len(self.x)

    def squashed(self, xi, W):
        return self.h(xi @ W / self.sigma) * self.sigma

    def frozen_moment(self, left, right):
        return self.mean(lambda i, xi: np.outer(left(xi @ self.F), right(xi @ self.F)))

    # losses, by the name of the objective

    stopped = False  # model.reconstruction=subspace: the encoder of linear losses is held
    norm = staticmethod(np.max)  # of σ, in main_scaled_decoder

    def linear_ae(self, W):
        encoder = self.F if self.stopped else W
        return self.mean(lambda i, xi: square(xi - (xi @ encoder) @ W.T))

    def hierarchical_linear(self, W):
        parts = [W[:, : j + 1] for j in columns(W.shape[1])]
        return sum(self.mean(lambda i, xi, V=V: square(xi - (xi @ V) @ V.T)) for V in parts)

    def wsla_unit_norm(self, W):
        S2 = self.sigma**2
        fixed = sum(S2[j] * (self.lam[j] - 1) * square(W[:, j]) for j in columns(W.shape[1]))
        return fixed + self.mean(
            lambda i, xi: (
                square((xi @ self.F) @ W.T - xi)
                - sum(self.lam[j] * (xi @ W)[j] ** 2 for j in columns(W.shape[1]))
                + square(xi @ W)
            )
        )

    def reconstruction_gha(self, W):
        moment = self.frozen_moment(lambda y: y, lambda y: y)
        return self.linear_ae(W) + np.sum(W * (self.F @ triangle(moment, diagonal=False)))

    def nested_dropout_linear(self, W):
        return self.mean(lambda i, xi: square((xi @ W * self.mask[i]) @ W.T - xi))

    def weighted_variance(self, W):
        return self.linear_ae(W) - self.alpha * self.mean(lambda i, xi: square((xi @ W) * np.sqrt(self.lam)))

    def variance_dropout(self, W):
        return self.linear_ae(W) - self.alpha * self.mean(lambda i, xi: square(xi @ W * self.mask[i]))

    def conventional(self, W):
        return self.mean(lambda i, xi: square(xi - self.h(xi @ W) @ W.T))

    def main_with_decoder(self, W):
        return self.mean(lambda i, xi: square(xi - self.squashed(xi, W) @ W.T))

    def main(self, W):
        return self.mean(lambda i, xi: square(xi - self.squashed(xi, W) @ self.F.T))

    def main_scaled_decoder(self, W):
        decoder = self.mean(lambda i, xi: square(xi - self.squashed(xi, self.F) @ W.T))
        return self.main(W) + decoder / self.norm(self.sigma)

    def main_deflation(self, W):
        P = np.eye(W.shape[1]) - triangle((W.T @ self.F).T, diagonal=False).T
        return self.mean(lambda i, xi: square(xi - self.squashed(xi, W @ P) @ self.F.T))

    def main_nested_dropout(self, W):
        return self.mean(lambda i, xi: square(xi - (self.squashed(xi, W) * self.mask[i]) @ self.F.T))

    def main_weighted_latent(self, W):
        gram = self.F.T @ self.F
        return self.mean(
            lambda i, xi: square(xi @ self.F * self.lam - (self.squashed(xi, W) * self.lam) @ gram)
        )

    def main_noncentred(self, W):
        mean, frozen = self.x.mean(0) @ W, self.x.mean(0) @ self.F
        return self.mean(
            lambda i, xi: square(xi - (self.h((xi @ W - mean) / self.sigma) * self.sigma + frozen) @ self.F.T)
        )

    def main_noncentred_mean(self, W):
        m = self.x.mean(0)
        return self.mean(lambda i, xi: square(xi - m - self.squashed(xi - m, W) @ self.F.T)) + square(
            m - m @ W @ W.T
        )

    def latent(self, W):
        return self.mean(lambda i, xi: square(xi @ self.F - self.squashed(xi, W)))

    def latent_wtw(self, W):
        gram = self.F.T @ self.F
        return self.mean(lambda i, xi: square(xi @ self.F - self.squashed(xi, W) @ gram))

    def latent_wtw_triangular(self, W):
        gram = triangle(self.F.T @ self.F)
        return self.mean(lambda i, xi: square(xi @ self.F - self.squashed(xi, W) @ gram))

    def rica(self, W):
        return self.linear_ae(W) + self.beta * self.mean(lambda i, xi: np.sum(np.abs(xi @ W)))

    def rica_logcosh(self, W):
        return self.linear_ae(W) + self.beta * self.mean(lambda i, xi: np.sum(np.log(np.cosh(xi @ W))))

    def skew_symmetric(self, W):
        M = self.frozen_moment(lambda y: y, self.h)
        return self.linear_ae(W) + self.beta * np.sum(W * (self.F @ (M - M.T)))

    def symmetric_off_diagonal(self, W):
        M = self.frozen_moment(lambda y: y, self.h)
        return self.linear_ae(W) + self.beta * np.sum(W * (self.F @ (M - np.diag(np.diag(M)))))

    def symmetric_off_diagonal_sigma(self, W):
        M = self.frozen_moment(lambda y: y, lambda y: self.h(y / self.sigma) * self.sigma)
        return self.linear_ae(W) + self.beta * np.sum(W * (self.F @ (M - np.diag(np.diag(M)))))

    # updates, by the name of the objective: −ΔW

    def update(self, name):
        def delta(i, xi):
            y = xi @ self.F
            return getattr(self, "delta_" + name)(xi, self.F, y)

        return -self.mean(delta)

    def delta_subspace(self, x, W, y):
        return np.outer(x, y) - W @ np.outer(y, y)

    def delta_wsla_1(self, x, W, y):
        return np.outer(x, y) - W @ np.outer(y, y) @ np.diag(1 / self.lam)

    def delta_wsla_2(self, x, W, y):
        return np.outer(x, y) @ np.diag(self.lam) - W @ np.outer(y, y)

    def delta_wsla_3(self, x, W, y):
        root = np.diag(np.sqrt(self.lam))
        return np.outer(x, y) - W @ np.outer(y @ root, y) @ np.linalg.inv(root)

    def delta_wsla_1_unit(self, x, W, y):
        L = np.diag(self.lam)
        return np.outer(x, y) - W @ np.outer(y @ L, y) @ np.linalg.inv(L)

    def delta_wsla_2_unit(self, x, W, y):
        L = np.diag(self.lam)
        return np.outer(x, y) @ L - W @ np.outer(y @ L, y)

    def delta_wsla_1_diagonal(self, x, W, y):
        L, M = np.diag(1 / self.lam), np.outer(y, y)
        removed = np.diag(np.diag(M)) - np.diag(np.diag(M @ L))
        return self.delta_wsla_1(x, W, y) - W @ removed

    def delta_wsla_2_diagonal(self, x, W, y):
        L, M = np.diag(self.lam), np.outer(y, y)
        removed = np.diag(np.diag(M @ L)) - np.diag(np.diag(M))
        return self.delta_wsla_2(x, W, y) - W @ removed

    def delta_weighted_latent(self, x, W, y):
        L = np.diag(self.lam)
        return np.outer(x, y) @ L - np.outer(x, self.h(y / self.sigma) * self.sigma) @ L @ (W.T @ W)

    def slope(self, z, step=1e-6):
        return (self.h(z + step) - self.h(z - step)) / (2 * step)

    def delta_main_scaled_encoder(self, x, W, y):
        z = y / self.sigma
        x_hat = self.h(z) * self.sigma @ W.T
        encoder = np.outer(x, (x_hat @ W - y) * self.slope(z)) @ np.diag(self.sigma)
        return -encoder - np.outer(x_hat - x, self.h(z) * self.sigma)

    def delta_main_unscaled_decoder(self, x, W, y):
        z = y / self.sigma
        x_hat = self.h(z) * self.sigma @ W.T
        return -np.outer(x, (x_hat @ W - y) * self.slope(z)) - np.outer(x_hat - x, self.h(z))

    def delta_gha(self, x, W, y):
        return np.outer(x, y) - W @ triangle(np.outer(y, y))

    def delta_gha_encoder(self, x, W, y):
        gram = triangle(W.T @ W)
        return self.delta_gha(x, W, y) - np.outer(x, y) @ (gram - np.eye(len(gram)))

    def delta_gha_subspace(self, x, W, y):
        return self.delta_gha(x, W, y) - W @ (np.outer(y, y) - np.diag(y**2))

    def delta_easi(self, x, W, y):
        h, one = self.h(y), np.eye(len(y))
        return -W @ (np.outer(y, y) - one + self.alpha * (np.outer(y, h) - np.outer(h, y)))

    def delta_bigradient(self, x, W, y):
        return np.outer(x, self.h(y / self.sigma) * self.sigma)


def finite_difference(of_W, W, step=1e-6):
    """Central differences of a number, entry by entry."""
    grad = np.zeros_like(W)
    for index in np.ndindex(*W.shape):
        up, down = W.copy(), W.copy()
        up[index] += step
        down[index] -= step
        grad[index] = (of_W(up) - of_W(down)) / (2 * step)
    return grad
