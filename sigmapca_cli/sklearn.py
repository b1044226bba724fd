"""σ-PCA as a scikit-learn estimator: `from sigmapca_cli.sklearn import SigmaPCA`."""

from sigmapca_cli.estimator.sigma_pca import SigmaPCA as SigmaPCA
