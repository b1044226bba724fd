"""What is run: panels, how often, and the settings that apply to all of them."""

from __future__ import annotations

from dataclasses import dataclass

QUICK_IMAGES = 80
# Half a million rows to scikit-learn's own tolerance, not to ours: the last digits take most of the time.
FASTICA = ("model=fastica", "model.tolerance=1e-4", "model.max_iter=200")
EIGENVECTORS = "model=pca_svd"


@dataclass(frozen=True)
class Setting:
    """What was asked of the command: whose recipe, which images, and whether a small version is enough."""

    recipe: str = "default"  # default | paper
    data: str = "cifar10"  # natural | cifar10 | mnist
    quick: bool = False
    extra: tuple[str, ...] = ()  # further overrides of every run; tests make runs tiny with them
    solver: str = "stochastic"  # stochastic | newton | moments, for the models that these solvers know
    seeds: int = 0  # runs of each panel from different seeds; 0: as many as the experiment says

    @property
    def way(self) -> str:
        """The name under which results are kept: default, paper, newton or moments."""
        return self.recipe if self.solver == "stochastic" else self.solver

    @property
    def faithful(self) -> bool:
        """Whether losses can be compared with those of the authors' own runs: their recipe on their images."""
        return self.recipe == "paper" and self.data == "cifar10" and not self.quick and not self.extra

    def repetitions(self, usual: int) -> int:
        """Return how often each panel is run: once in a quick look, and by a solver, which draws nothing."""
        if self.solver != "stochastic":
            return 1
        return self.seeds or (1 if self.quick else usual)


@dataclass(frozen=True)
class Panel:
    """One run, or several from different seeds: `key` names it in claims, `overrides` follow `experiment=NAME`."""

    key: str
    caption: str
    overrides: tuple[str, ...] = ()
    shown: bool = True  # False: run for a claim only
    mnist: bool = False  # on MNIST, whatever the other panels are on
    once: bool = False  # in no claim: one seed is enough for the figure

    @property
    def seeded(self) -> bool:
        """Whether it is run from several seeds. An eigendecomposition and a solver draw nothing."""
        return EIGENVECTORS not in self.overrides and not self.solved and not self.once

    @property
    def solved(self) -> bool:
        """Whether it names its own solver, which `--solver` leaves in its place."""
        return any(o.startswith("solver=") for o in self.overrides)

    def seed(self, repetition: int) -> str:
        """Return the override that sets the seed of a repetition; halves count on in twos, so that no two share one."""
        given = next((int(o.removeprefix("seed=")) for o in self.overrides if o.startswith("seed=")), None)
        return f"seed={repetition if given is None else given + 2 * repetition}"


def name_of(key: str, repetition: int) -> str:
    """Return the name of one run of a panel: its key, with the number of the repetition from the second one on."""
    return key if repetition == 0 else f"{key}@{repetition}"


def images(panel: Panel, setting: Setting) -> list[str]:
    """Which images: the first 500, or a random handful where a quick look is enough."""
    kind = "mnist" if panel.mnist else setting.data
    found = [f"data={kind}"]
    if kind == "mnist":
        # The test set is the part of MNIST that is most often at hand; any 500 digits do.
        found.append("data.split=test")
    if setting.data == "natural" and kind != "natural":
        found.append("data.offline=true")
    if setting.quick:
        # Neighbouring tiles of one photograph are much alike.
        found += [f"data.images={QUICK_IMAGES}", "data.select=random"]
    return found


def halves(key: str, *overrides: str, once: bool = False) -> tuple[Panel, Panel]:
    """Two runs on disjoint halves of the images from different random numbers, as many steps as a whole run."""
    longer = () if any(o.startswith("epochs=") for o in overrides) else ("epochs=6",)
    even, odd = (
        Panel(f"{key}/{half}", f"{key}, {half} images", (*overrides, *longer, f"data.half={half}", f"seed={seed}"),
              False, once=once)
        for seed, half in enumerate(("even", "odd"), 1)
    )  # fmt: skip
    return even, odd
