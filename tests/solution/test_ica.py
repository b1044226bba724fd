"""A run on an EEG recording, used by MNE as its own ICA."""

import numpy as np
import pytest

import sigmapca_cli as sp
from sigmapca_cli.solution.export import export
from sigmapca_cli.system.errors import InputError

mne = pytest.importorskip("mne")
NAMES = ["Fp1", "Fp2", "F3", "F4", "C3", "C4", "STI"]
LICA = {"model": "lica", "solver": "independence"}


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A recording in volts with an offset, a bad channel, a stimulus channel and a projection that is not applied."""
    g = np.random.default_rng(0)
    info = mne.create_info(NAMES, 250.0, ["eeg"] * 6 + ["stim"])
    sources = g.laplace(size=(6, 1500)) * np.linspace(1, 4, 6)[:, None] * 1e-5
    values = np.vstack([g.standard_normal((6, 6)) @ sources + 3e-6, np.zeros((1, 1500))])
    raw = mne.io.RawArray(values, info, verbose="ERROR")
    raw.info["bads"] = ["Fp2"]
    raw.set_eeg_reference("average", projection=True, verbose="ERROR")
    path = tmp_path_factory.mktemp("eeg") / "a_raw.fif"
    raw.save(path, verbose="ERROR")
    return path


def trained(recording, **settings):
    given = {"k": 3, "model": "pca_svd", **settings}
    return sp.train(str(recording), outputs=recording.parent / "outputs", **given)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param({"k": 1, "data__standardise": "feature"}, marks=pytest.mark.full),
        pytest.param({**LICA, "data__standardise": "feature"}, marks=pytest.mark.full),
        pytest.param({**LICA, "k": 5, "data__whiten": "zca"}, marks=pytest.mark.full),
    ],
)
def test_sources_are_the_components_and_apply_removes_them(recording, settings, sigmapca, tmp_path):
    run = trained(recording, **settings)
    ica = mne.preprocessing.read_ica(export(run, tmp_path / "out-ica.fif"), verbose="ERROR")
    raw = mne.io.read_raw(recording, preload=True, verbose="ERROR")
    Y = run.transform(raw.get_data(run.names).T)
    np.testing.assert_allclose(ica.get_sources(raw).get_data().T, Y, atol=1e-9)
    np.save(tmp_path / "rows.npy", raw.get_data(run.names).T)
    done = sigmapca("reconstruct", str(run.folder), "rows.npy", "out.npy", "--without", "1")
    assert done.returncode == 0, done.stderr
    cleaned = ica.apply(raw.copy(), exclude=[0], verbose="ERROR").get_data(run.names).T
    np.testing.assert_allclose(cleaned, np.load(tmp_path / "out.npy"), atol=1e-12)
    assert np.abs(cleaned - np.load(tmp_path / "rows.npy")).max() > 1e-6


def test_channels_of_a_table_are_described_by_the_user(recording, tmp_path):
    values = mne.io.read_raw(recording, verbose="ERROR").get_data(NAMES[:6]).T
    header = ",".join(NAMES[:6])
    np.savetxt(tmp_path / "eeg.csv", values, delimiter=",", header=header, comments="")
    run = trained(tmp_path / "eeg.csv")
    with pytest.raises(InputError, match="to_mne"):
        run.to_mne()
    # Channels are found by name, whatever their order.
    ica = run.to_mne(mne.create_info(NAMES[::-1], 250.0, "eeg"))
    raw = mne.io.RawArray(values[:, ::-1].T, mne.create_info(NAMES[5::-1], 250.0, "eeg"), verbose="ERROR")
    np.testing.assert_allclose(ica.get_sources(raw).get_data().T, run.transform(values), atol=1e-9)
    with pytest.raises(InputError, match="F4"):
        run.to_mne(mne.create_info(NAMES[:3], 250.0, "eeg"))


@pytest.mark.parametrize("settings", [{"data__whiten": "pca"}, {"data__clip": 0.01}])
def test_what_an_ica_cannot_hold_is_refused(recording, settings):
    with pytest.raises(InputError, match=next(iter(settings)).replace("__", ".")):
        trained(recording, **settings).to_mne()


def test_the_name_of_the_file_is_one_that_mne_reads(recording):
    with pytest.raises(InputError, match="ica"):
        export(trained(recording), recording.parent / "out.fif")
